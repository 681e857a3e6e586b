"""Sweeps that already ran: rebuilt from their records, and forecast under other policies."""
