/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators say of paths.
 */
#include "lib/path-rule.h"

static const char *const path_forms[] = {
    [PATH_FORM_AUTO] = "auto",
    [PATH_FORM_USD] = "usd",
    [PATH_FORM_AGENT] = "agent",
    [PATH_FORM_DT6] = "dt6",
};
WORDS_DEFINE(path_form, enum path_form, path_forms);

static const char *const path_rule_kinds[] = {[PATH_PIN] = "pin", [PATH_EXCLUDE] = "exclude"};
WORDS_DEFINE(path_rule_kind, enum path_rule_kind, path_rule_kinds);
