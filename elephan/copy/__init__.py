"""Copies between hosts: both ends of one, its progress, decisions on the way and receipt."""
