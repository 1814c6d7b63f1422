// SAFETY: a coder works on one thread, and none of its accesses to the value goes on while another
// begins: each reads or changes it at once and calls nobody meanwhile.

/// A value that one owner reads and changes, so that no access needs a check.
@safe
final class SingleOwner<Value> {
  @exclusivity(unchecked)
  private var stored: Value

  init(_ value: Value) { unsafe stored = value }

  var value: Value {
    @inline(__always) get { unsafe stored }
    @inline(__always) _modify { yield unsafe &stored }
  }
}
