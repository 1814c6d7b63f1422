public import Tidemark

/// Entries that a sign-out would lose, since only this store has them. Nothing was changed: parked
/// entries can be retried or discarded, conflicts decided, and then the user signs out again. It is
/// the cause of an error with the code `unsentChanges`.
public struct UnsentChangesError: Error, Sendable, Hashable, CustomStringConvertible {
  /// How many entries the sign-out would lose.
  public var entries: Int
  /// The keys of the first hundred of these entries, in the order of the log.
  public var keys: [Key]

  /// A text for people that says how many entries would be lost, and what to do.
  public var description: String {
    "\(entries) entries are not at the peer, such as \(keys.first.map { "\($0)" } ?? "-"); send, "
      + "retry or discard them, or sign out with .discard"
  }
}
