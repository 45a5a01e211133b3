"""The ledger under fire: kills, full disks, many writers, wrong clocks, damaged files."""
