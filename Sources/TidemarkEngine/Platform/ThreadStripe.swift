// SAFETY: the address is taken as a number, and nothing is read from it.

/// A number that running threads seldom share, for state of which each thread changes a part of its
/// own: threads have stacks of their own, so an address on the stack tells them apart.
package enum ThreadStripe {
  /// Numbers are below this.
  package static let count = 16

  @inline(__always)
  package static var number: Int {
    var mark: UInt8 = 0
    let address = unsafe withUnsafeMutablePointer(to: &mark) { UInt64(UInt(bitPattern: $0)) }
    return Int(truncatingIfNeeded: ((address &>> 16) &* 0x9E37_79B9_7F4A_7C15) &>> 60)
  }
}
