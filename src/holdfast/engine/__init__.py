"""The story of a run: declare, call, save, fail, recover."""
