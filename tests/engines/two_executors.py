"""Spark with two executors on this machine, started so that a busy machine is no dead one.

Work starts when both executors are there, heartbeats and registrations may take minutes, and the
master gives no application up because executors were slow to start.
"""

from __future__ import annotations

from typing import Any

_PATIENT = {
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
    "spark.network.timeout": "900s",
    "spark.rpc.askTimeout": "900s",
    "spark.rpc.lookupTimeout": "900s",
    "spark.executor.heartbeatInterval": "60s",
    "spark.worker.timeout": "900",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.task.maxFailures": "8",
}


def start(memory: int, **settings: str) -> Any:
    """A session on two executors with one core each, and so many MB; settings without "spark."."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(f"local-cluster[2,1,{memory}]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
    )
    told = _PATIENT | {f"spark.{name}": value for name, value in settings.items()}
    for name, value in told.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
