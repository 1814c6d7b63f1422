/// So many entries were refused by a peer, or wait for the user, that nothing more is sent to it:
/// as likely as not it refuses everything, such as to a token that does not reach the data.
///
/// Nothing is lost. Once the reason is gone the entries can be sent again with
/// ``Replicator/retry(_:)``, or given up with ``Replicator/discard(_:)``; then, or with
/// ``Replicator/poke()``, the replicator goes on. It is the cause of an error with the code
/// `tooManyParked`.
public struct TooManyParked: Error, Sendable, Hashable, CustomStringConvertible {
  /// How many entries.
  public var entries: Int

  /// The reason, for people.
  public var description: String {
    "\(entries) entries were refused by the peer or wait for a decision; nothing more is sent "
      + "until they are retried or discarded"
  }
}
