public import Tidemark

/// Entries that would be lost by signing out, as nobody has them but this store. Nothing has
/// changed: what is parked can be retried or discarded, a conflict be decided, and then the user
/// signs out again. It is the cause of an error with the code `unsentChanges`.
public struct UnsentChanges: Error, Sendable, Hashable, CustomStringConvertible {
  /// How many entries.
  public var entries: Int
  /// The keys of the first hundred, in the order of the log.
  public var keys: [Key]

  /// The reason, for people.
  public var description: String {
    "\(entries) entries are not at the peer, such as \(keys.first.map { "\($0)" } ?? "-"); send, "
      + "retry or discard them, or sign out with .discard"
  }
}
