package config

// tellsModes is whether a file's mode says who may read it.
const tellsModes = false
