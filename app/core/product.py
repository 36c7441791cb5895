"""What only the product's own browser client needs.

It was made for a service that also keeps the files, so it sends and reads members of which this
service makes no use. They stand here, and are null, empty or zero, so that the client works.
"""

# Claims of a provider that nothing here reads: taken if blank, and shown as null.
PROVIDER_CLAIMS = ("groups_claim", "avatar_url_claim")
