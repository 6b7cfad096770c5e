/* SPDX-License-Identifier: Apache-2.0
 *
 * Known mistakes that can be switched on, for castsim only.
 */
#include "lib/defect.h"

unsigned int defects;
