"""What the tests share: scripted servers, clients and builders of messages."""
