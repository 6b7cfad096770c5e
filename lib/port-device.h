/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kinds of port share that take a network device over; for lib/port-*.c only.
 *
 * Errors are positive errno values; *why is then a static string that says what could not be done.
 */
#ifndef LIB_PORT_DEVICE_H
#define LIB_PORT_DEVICE_H 1

#include <stdint.h>

/* A packet socket that receives nothing yet; -1 and errno. */
int device_socket(const char **why);
/* Has the socket receive frames of this type (ETH_P_ALL: all; 0: none) from the device. */
int device_bind(int fd, int ifindex, uint16_t type, const char **why);
/* Makes the device promiscuous while the socket is open. */
int device_promiscuous(int fd, int ifindex, const char **why);
/* The socket's error was ENETDOWN, which is said once for a device that went down, and once for one
 * that went away: the former comes back by itself (ENETDOWN), the latter does not (ENODEV). */
int device_down_or_gone(int fd);

/* Makes a socket's buffer large enough for bursts of 129 packets from several QPs. */
void device_large_buffer(int fd, int force, int plain);
/* Turns generic and large receive offload off, for good.  Not every device has them. */
void device_stop_merging(int fd, const char *netdev);
/* Calls ethtool's ioctl with 'command', a struct that begins with an ethtool command. */
int device_ethtool(int fd, const char *netdev, void *command);

#endif /* lib/port-device.h */
