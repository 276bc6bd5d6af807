"""Backup jobs: when they run, their retries, older versions, forecasts against what came."""
