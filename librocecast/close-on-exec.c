/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the library's sockets from programs that the host program starts.
 *
 * libopenvswitch opens its sockets without SOCK_CLOEXEC.  A child with a copy of
 * the connection would keep it open after the program has ended, and the registry
 * would go on sending though nobody reads.  The linker (--wrap=socket) leads all
 * calls of the archives here.
 */
#include <sys/socket.h>

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);

int
__wrap_socket(int domain, int type, int protocol)
{
    return __real_socket(domain, type | SOCK_CLOEXEC, protocol);
}
