/* SPDX-License-Identifier: Apache-2.0
 *
 * Sockets that programs which the host starts do not inherit.
 *
 * libopenvswitch opens its sockets without SOCK_CLOEXEC.  A child with a copy of
 * the connection would keep it open when the program has ended, and the registry
 * would go on sending to where nobody reads.  The linker (--wrap=socket) leads
 * all calls of the archives here.
 */
#include <sys/socket.h>

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);

int
__wrap_socket(int domain, int type, int protocol)
{
    return __real_socket(domain, type | SOCK_CLOEXEC, protocol);
}
