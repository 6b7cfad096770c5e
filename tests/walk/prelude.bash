# SPDX-License-Identifier: Apache-2.0
#
# What bash reads before it takes commands of the walk (shells.py).  Of a command that fails it is
# said which; scripts and 'bash -c' are left alone.
if [ "$0" = bash ] && [ -z "${BASH_EXECUTION_STRING-}" ] && [ -n "${WALK_CONTROL-}" ]; then
    trap 'printf "exit status %d: %s\n" "$?" "${BASH_COMMAND%%$'"'\n'"'*}" >&"$WALK_CONTROL"' ERR
    walk_end() { echo end >&"$WALK_CONTROL"; }
    # All is run as root already, and sudo need not be installed.
    sudo() { "$@"; }
fi
