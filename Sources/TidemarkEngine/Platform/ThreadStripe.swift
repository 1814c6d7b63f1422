// SAFETY: the address is taken as a number, and nothing is read from it.

/// A small number by which threads choose a stripe of shared state, so that two seldom choose the
/// same: hashes the address of the stack. A thread may get another number at its next call.
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
