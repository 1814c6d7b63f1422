public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// Looks at what replicas push before it is taken, and may refuse it.
///
/// ```swift
/// let titles = SyncValidator(prefix: "note/") { change, _ in
///   change.content.value.count > 1_000_000
///     ? Rejection(code: "tooLong", message: "A note has a million bytes at most.") : nil
/// }
/// ```
/// A refused change is never tried again: the writer keeps it, listed with the reason, until a
/// person decides. Validators must be quick, and decide by what they are given alone: a batch may
/// be judged again.
public struct SyncValidator: Sendable {
  /// For the keys that begin with it.
  public var prefix: Key
  /// Gives the reason to refuse a change of a replica; nil lets it pass.
  public var check: @Sendable (ProposedChange, ReplicaID) -> Rejection?

  /// A validator.
  /// - Parameters:
  ///   - prefix: of the keys that it looks at, text or bytes; empty for all.
  ///   - check: gives the reason to refuse a change; nil lets it pass.
  public init(
    prefix: some BytesConvertible = "",
    check: @escaping @Sendable (ProposedChange, ReplicaID) -> Rejection?
  ) {
    self.prefix = Key(prefix)
    self.check = check
  }
}

/// A change that a replica has pushed, as a ``SyncValidator`` sees it.
public struct ProposedChange: Sendable, Hashable {
  /// Whether it puts or deletes.
  public var kind: ChangeKind
  /// The key that it changes.
  public var key: Key
  /// The value that the key gets, with its labels; nothing for a delete.
  public var content: SyncContent
  /// When it was committed, by the writer's clock.
  public var commitTime: Timestamp
  /// The writer's own time.
  public var time: Timestamp?

  /// A change.
  public init(
    kind: ChangeKind, key: some BytesConvertible, content: SyncContent = SyncContent(),
    commitTime: Timestamp, time: Timestamp? = nil
  ) {
    self.kind = kind
    self.key = Key(key)
    self.content = content
    self.commitTime = commitTime
    self.time = time
  }

  init(_ change: PushedChange) {
    self.init(
      kind: change.kind, key: Key(change.key), content: change.content,
      commitTime: HybridTime(change.commitTime).orderedTimestamp, time: change.time)
  }
}
