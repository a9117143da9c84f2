# Writes the Parquet files of this folder:
#
#   pip install pandas==3.1.1 pyarrow==26.0.1 && python make.py

from datetime import datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

# No rows: pandas writes one row group without rows, whose columns have a dictionary page
# and no data page.
frame = pd.DataFrame({"name": ["a"], "n": [1], "at": [pd.Timestamp("2026-03-01T12:00:00Z")]})
frame.iloc[:0].to_parquet("empty.parquet")

# INT96 timestamps, decimals, and bytes without a logical type.
pq.write_table(
    pa.table({
        "at": pa.array([datetime(2026, 3, 1, 12, 0, 0, 123456), datetime(1969, 7, 20, 20, 17, 40), None], pa.timestamp("us")),
        "whole": pa.array([Decimal(42), Decimal(-7), None], pa.decimal128(10, 0)),
        "price": pa.array([Decimal("12.50"), Decimal("-0.05"), None], pa.decimal128(10, 2)),
        "word": pa.array([b"caf\xc3\xa9", b"", None], pa.binary()),
        "raw": pa.array([b"\x00\xff", b"", None], pa.binary()),
    }),
    "types.parquet",
    use_deprecated_int96_timestamps=True,
)
