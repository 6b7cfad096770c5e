/* SPDX-License-Identifier: Apache-2.0
 *
 * What a registry may be called, and the keys for ssl:.  Runs in the loop's
 * thread.
 *
 * Without the check libopenvswitch would try for ever to reach what it cannot
 * parse, and would wait for connections on a ptcp:.
 */
#include <config.h>

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/registry/values.h"
#include "librocecast/internal.h"
#include "stream-ssl.h"
#include "util.h"

/* The file for ssl: that an environment variable names; NULL, with '*error': it cannot be read. */
static const char *
key_file(const char *variable, int *error, char **whyp)
{
    const char *file = getenv(variable);

    if (*error) {
        return NULL;
    }
    if (!file || !file[0]) {
        *error = EINVAL;
        *whyp = xasprintf("ssl: needs $%s, the name of a PEM file", variable);
    } else if (access(file, R_OK)) {
        *error = errno;
        *whyp = xasprintf("$%s: %s: %s", variable, file, ovs_strerror(errno));
    }
    return *error ? NULL : file;
}

/* Once for all connections: libopenvswitch has one set of keys. */
static int
use_keys(char **whyp)
{
    int error = 0;
    const char *key = key_file("ROCECAST_PRIVATE_KEY", &error, whyp);
    const char *certificate = key_file("ROCECAST_CERTIFICATE", &error, whyp);
    const char *ca = key_file("ROCECAST_CA_CERT", &error, whyp);

    if (!error) {
        /* OpenSSL must not clean up when the process ends: this thread still uses it then. */
        OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
        stream_ssl_set_key_and_cert(key, certificate);
        stream_ssl_set_ca_cert_file(ca, false);
    }
    return error;
}

int
remote_check(const char *db, char **whyp)
{
    if (!db_is_valid(db)) {
        *whyp = xasprintf("registry '%s': " DB_RULE, db);
        return EINVAL;
    }
    return db_needs_keys(db) ? use_keys(whyp) : 0;
}
