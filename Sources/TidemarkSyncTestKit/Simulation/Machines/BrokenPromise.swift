/// An oracle's complaint.
struct BrokenPromise: Error, CustomStringConvertible {
  var description: String
  init(_ description: String) { self.description = description }
}
