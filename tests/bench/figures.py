# SPDX-License-Identifier: Apache-2.0
"""What several parts compute from their runs."""
import statistics


def medians(rows):
    """The median of each column."""
    return [statistics.median(column) for column in zip(*rows)]
