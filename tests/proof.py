# SPDX-License-Identifier: Apache-2.0
"""Which function a result line is about, so that tests/conformance finds what it proves."""
import inspect
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def where(function):
    """'[FILE:FUNCTION]' for the end of a result line.  Of a case that another function has made, as
    whole_write(tree) makes one, that is the maker: it stands at the top of the file and has the
    annotation."""
    function = inspect.unwrap(function)
    path = os.path.relpath(os.path.realpath(function.__code__.co_filename), ROOT)
    return '[%s:%s]' % (path, function.__qualname__.split('.<locals>')[0])
