package main

import "context"

func (p *packer) macPackage(context.Context) error { return nil }
