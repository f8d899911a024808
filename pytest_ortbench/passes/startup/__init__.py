"""Starts from fresh processes under known conditions."""
