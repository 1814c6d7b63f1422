/// The bounds of the wire format. `WireProtocol.md`, section "Bounds", has the same numbers; those
/// of keys, values, labels and hashes are the store's.
package enum WireLimits {
  /// Offsets, sequences and numbers of batches stay below: whatever is counted on from one of them
  /// is still a number.
  package static let counts: UInt64 = 1 << 48
  /// Most changes, entries, keys or verdicts in one message.
  package static let rows = 65_536
  /// Most labels, and most key prefixes, of a scope.
  static let scopeRows = 4_096
  /// Most policies of a hello's answer, and most bytes of their prefixes together.
  static let policies = 1_024
  static let policyBytes = 32 << 10
  /// Longest path of a digest: a hash as a whole.
  package static let pathBytes = 32
  /// Most parts of a digest that are asked for at once.
  static let digestPaths = 1_024
  /// How many parts a part of a digest has.
  static let digestParts = 256
  /// Longest code of a rejection.
  package static let codeBytes = 64
  /// Longest text for people.
  static let textBytes = 1_024
  /// The limit of all texts of one mark together; those behind it are left out.
  static let markTextBytes = 256 << 10
  /// Largest number of changes and bytes that a message can state as a limit.
  static let statedLimit = Int(Int32.max)
  /// Most bytes of optional fields of a message or entry.
  static let optionalBytes = 64 << 10
  /// Deepest nesting of a message as JSON.
  package static let depth = 16
  /// Most members of one object of a message as JSON.
  package static let members = 64
  /// How many times as long as a frame's raw content the same message as JSON may be.
  static let jsonFactor = 4
}
