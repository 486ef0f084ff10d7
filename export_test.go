package fusec

// Programs that tests with and without a GPU share.
var (
	ProductBodies     = productBodies
	QuantisedProducts = quantised
)
