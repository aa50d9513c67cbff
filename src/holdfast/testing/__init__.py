"""What proves the promises, shipped: contract suites, kill kit, fakes."""
