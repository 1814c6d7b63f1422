/// The bounds of the wire format. `WireProtocol.md`, section "Bounds", has the same numbers; those
/// of keys, values, labels and hashes are the store's.
package enum WireLimits {
  /// Offsets, sequences and numbers of batches are below this, so that counting on cannot overflow.
  package static let counts: UInt64 = 1 << 48
  /// Most changes, entries, keys or verdicts in one message.
  package static let rows = 65_536
  /// Most labels, and most key prefixes, of a scope.
  static let scopeRows = 4_096
  /// Most policies of a hello's answer, and most bytes of their prefixes together.
  static let policies = 1_024
  static let policyBytes = 32 << 10
  /// Longest path of a digest in a message; a handler accepts only ``DigestTable/pathBytes``.
  package static let pathBytes = 32
  /// Most parts of one request for a digest.
  static let digestPaths = 1_024
  /// How many parts a part of a digest has.
  static let digestParts = 256
  /// Longest text for people.
  static let textBytes = 1_024
  /// Most bytes of all texts of one mark together; further texts are left out.
  static let markTextBytes = 256 << 10
  /// Largest number of changes or bytes that a message can state as a limit.
  static let statedLimit = Int(Int32.max)
  /// Most bytes of optional fields of a message or entry.
  static let optionalBytes = 64 << 10
  /// Deepest nesting of a message as JSON.
  package static let depth = 16
  /// Most members of one object of a message as JSON.
  package static let members = 64
  /// A message as JSON may have this many times the bytes that a frame may have.
  static let jsonFactor = 4
}
