public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// What a caller is authorized to read and write, given with every call to a ``SyncHandler``.
///
/// ```swift
/// let access = SyncAccess(to: SyncScope(labels: ["user/17"]))
/// let page = try handler.pull(request, access: access)
/// ```
public struct SyncAccess: Sendable, Hashable {
  /// The entries that the caller can read and write; nil for all. An empty scope means no entries.
  public var scope: SyncScope?
  /// Whether the caller can push changes. With false it can only read.
  public var canPush: Bool

  /// An authorization that reaches every entry, for reading and writing.
  public static let everything = SyncAccess(to: nil)

  /// Creates the authorization of a caller.
  /// - Parameters:
  ///   - scope: the entries that the caller can read and write; nil for all.
  ///   - canPush: whether the caller can push changes.
  public init(to scope: SyncScope?, canPush: Bool = true) {
    self.scope = scope
    self.canPush = canPush
  }

  /// A hash of the scope, which answers contain so that a client notices another authorization: 0
  /// for everything, not 0 for the empty scope, and equal on every server.
  package var reach: UInt64 { scope.map { max(1, $0.hash(seed: 2)) } ?? 0 }

  /// Whether some labels could bring a key within reach.
  func mayReach(key: [UInt8]) -> Bool {
    guard let scope else { return true }
    return !scope.labels.isEmpty || reaches(key: key, labels: [])
  }

  /// Whether some key that begins with a prefix could be within reach.
  func mayReach(keysWithPrefix prefix: [UInt8]) -> Bool {
    guard let scope else { return true }
    return !scope.labels.isEmpty
      || scope.prefixBytes.contains { $0.starts(with: prefix) || prefix.starts(with: $0) }
  }

  /// Whether an entry is within reach.
  package func reaches(key: [UInt8], labels: [[UInt8]]) -> Bool {
    guard let scope else { return true }
    return !scope.isEverything && scope.contains(key: key, labels: labels)
  }
}

/// Checks changes that replicas push before they are judged, and may reject them.
///
/// ```swift
/// let titles = SyncValidator(prefix: "note/") { change, _ in
///   change.content.value.count > 1_000_000
///     ? SyncRejection(code: "tooLong", message: "A note has a million bytes at most.") : nil
/// }
/// ```
/// A rejected change is not retried: the writer keeps it, listed with the reason, until a person
/// decides. Validators must be quick, and decide by their arguments alone: a batch may be judged
/// more than once.
public struct SyncValidator: Sendable {
  /// The validator checks changes of keys that begin with this prefix; empty for all keys.
  public var prefix: Key
  /// Judges a change of a replica: returns the reason to reject it, or nil to accept it.
  public var check: @Sendable (ProposedChange, ReplicaID) -> SyncRejection?

  /// Creates a validator for the changes of some keys.
  /// - Parameters:
  ///   - prefix: the prefix of the keys that it checks, as text or bytes; empty for all keys.
  ///   - check: returns the reason to reject a change; nil accepts the change.
  public init(
    prefix: some BytesConvertible = "",
    check: @escaping @Sendable (ProposedChange, ReplicaID) -> SyncRejection?
  ) {
    self.prefix = Key(prefix)
    self.check = check
  }
}

/// A change that a replica has pushed, as a ``SyncValidator`` sees it.
public struct ProposedChange: Sendable, Hashable {
  /// Whether the change puts or deletes its key.
  public var kind: ChangeKind
  /// The key that the change puts or deletes.
  public var key: Key
  /// The value that the key gets, with its labels; empty for a delete.
  public var content: SyncContent
  /// When the writer committed the change, by the writer's clock.
  public var commitTime: Timestamp
  /// The time that the writer's program gave the entry; nil if it gave none.
  public var time: Timestamp?

  /// Creates a change, for tests of a ``SyncValidator``.
  /// - Parameters:
  ///   - kind: whether the change puts or deletes its key.
  ///   - key: the key.
  ///   - content: the value and labels that the key gets; empty for a delete.
  ///   - commitTime: when the writer committed the change.
  ///   - time: the time that the program gave the entry; nil for none.
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

/// Finds faults of a pushed change that do not depend on what its key holds.
enum ChangeCheck {
  /// - Returns: nil when the change is sound and must be judged.
  static func rejection(
    of change: PushedChange, by replica: ReplicaID, _ validators: [SyncValidator]
  ) -> SyncRejection? {
    if let reason = problem(with: change) {
      return SyncRejection(code: "invalid", message: reason)
    }
    for validator in validators where change.key.starts(with: validator.prefix.bytes) {
      if let rejection = validator.check(ProposedChange(change), replica) {
        return rejection.bounded
      }
    }
    return nil
  }

  /// Checks for all that the log would refuse, so that one bad change does not fail its batch.
  private static func problem(with change: PushedChange) -> String? {
    let content = change.content
    do throws(TidemarkError) {
      try OperationBatch.check(
        key: change.key.count, value: content.value.count,
        kind: change.kind == .put ? .put : .delete)
    } catch { return error.message }
    // Messages have a bound for sequences: an entry with a greater one could not be pulled.
    guard (1..<WireLimits.counts).contains(change.sequence) else {
      return "the change's sequence is \(change.sequence); sequences are 1 to 2^48 - 1"
    }
    if let time = change.time, time.nanoseconds > 999_999_999 {
      return "the change's own time has more than a second of nanoseconds"
    }
    guard change.kind == .put else { return nil }
    guard content.labels.count <= Limits.labelsPerEntry else {
      return "\(content.labels.count) labels; at most \(Limits.labelsPerEntry) are allowed"
    }
    guard content.labels.allSatisfy({ (1...Limits.labelBytes).contains($0.bytes.count) }) else {
      return "a label is empty or longer than \(Limits.labelBytes) bytes"
    }
    guard (content.hash?.count ?? 0) <= Limits.hashBytes else {
      return "the hash is longer than \(Limits.hashBytes) bytes"
    }
    return nil
  }
}
