/** An error that a package threw where nobody could catch it. */
export interface PackageFault {
  readonly package: string
  readonly error: Error
}
