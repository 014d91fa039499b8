"""Who a client is (inbound). May import `core` and below; knows headers, not HTTP."""
