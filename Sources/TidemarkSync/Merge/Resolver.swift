public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// The three states that a conflict is about.
public struct Conflict: Sendable, Hashable {
  /// The key.
  public var key: Key
  /// The content that both changes were made upon; nil when the key was absent or nobody knows any
  /// more.
  public var base: SyncContent?
  /// The content that this store holds; nil when it has deleted the key.
  public var local: SyncContent?
  /// The content that the feed holds; nil when the key was deleted there.
  public var remote: SyncContent?
  /// When the local change was committed, by this store's clock. Below the millisecond it is a
  /// count that tells changes of the same millisecond apart, in their order.
  public var localTime: Timestamp
  /// When the remote change was committed, by its writer's clock, likewise.
  public var remoteTime: Timestamp

  /// A conflict.
  public init(
    key: some BytesConvertible, base: SyncContent?, local: SyncContent?, remote: SyncContent?,
    localTime: Timestamp = Timestamp(seconds: 0), remoteTime: Timestamp = Timestamp(seconds: 0)
  ) {
    self.key = Key(key)
    self.base = base
    self.local = local
    self.remote = remote
    self.localTime = localTime
    self.remoteTime = remoteTime
  }
}

/// The outcome for a key on which both sides have written.
public enum Resolution: Sendable, Hashable {
  /// The local state, which is sent on top of the remote one.
  case local
  /// The remote state; the local change stays in the history.
  case remote
  /// A state made of both, which is sent.
  case merged(SyncContent)
  /// The remote state, and the local one under another key.
  case both(localKey: Key)
  /// The user decides; until then both can be read.
  case ask
}

/// Decides conflicts. It must be a pure function of what it is given: it may run again.
public struct ConflictResolver: Sendable {
  /// The winner when one side edited and the other deleted.
  public enum DeleteEdit: String, Sendable, Hashable, CaseIterable {
    /// The edit stays.
    case editSurvives
    /// The delete stays.
    case deleteWins
    /// The resolver decides as it does of edits.
    case resolve
  }

  /// The winner when one side edited and the other deleted.
  public var deleteEdit: DeleteEdit
  private let body: @Sendable (Conflict) -> Decision

  /// A resolution, and how a merge of fields has come to it.
  struct Decision: Sendable, Hashable {
    var resolution: Resolution
    /// How many fields both sides had changed, each in its way.
    var clashes = 0
    /// Whether two values could not be merged by their fields.
    var hasFallenBack = false
  }

  /// A resolver of the program's own.
  /// - Parameters:
  ///   - deleteEdit: who wins when one side edited and the other deleted.
  ///   - body: decides; a pure function.
  public init(
    deleteEdit: DeleteEdit = .editSurvives, _ body: @escaping @Sendable (Conflict) -> Resolution
  ) {
    self.init(deleteEdit, deciding: { Decision(resolution: body($0)) })
  }

  private init(
    _ deleteEdit: DeleteEdit, deciding body: @escaping @Sendable (Conflict) -> Decision
  ) {
    self.deleteEdit = deleteEdit
    self.body = body
  }

  /// Local changes that were not sent yet stay: the default.
  public static let localWins = ConflictResolver { _ in .local }
  /// The feed's content replaces local changes.
  public static let remoteWins = ConflictResolver(deleteEdit: .resolve) { _ in .remote }
  /// The user decides.
  public static let ask = ConflictResolver(deleteEdit: .resolve) { _ in .ask }

  /// Both stay, the local state under the key with a suffix.
  /// - Parameter suffix: what the key gets; the remote state keeps the key.
  public static func keepBoth(suffix: String = " (local)") -> ConflictResolver {
    ConflictResolver { conflict in
      let key = conflict.key.bytes + suffix.utf8
      return key.count <= Limits.keyBytes ? .both(localKey: Key(key)) : .ask
    }
  }

  /// Values that are JSON objects are merged field by field: what one side changed is taken from
  /// it. Values are compared by what they say, so that names in another order, other escapes and
  /// `1.0` for `1` are no change.
  ///
  /// ``SyncReport`` counts what was merged, which fields clashed and what fell back.
  /// - Parameters:
  ///   - clash: decides on each field that both sides changed, arrays and scalars among them;
  ///     without a base, on fields that differ.
  ///   - fallback: decides on values that are no JSON objects, or that have a name twice in one
  ///     object, more than 64 levels or more than 262,144 values.
  public static func mergeFields(
    clash: FieldClashRule = .asFallback, fallback: ConflictResolver = .localWins
  ) -> ConflictResolver {
    ConflictResolver(fallback.deleteEdit) { conflict in
      guard conflict.local != nil, conflict.remote != nil else { return fallback.decide(conflict) }
      let merge = FieldMerge(conflict, clash, fallback: fallback)
      if let merged = merge.merged {
        return Decision(resolution: .merged(merged), clashes: merge.clashes)
      }
      var decision = fallback.decide(conflict)
      decision.clashes += merge.clashes
      decision.hasFallenBack = true
      return decision
    }
  }

  /// The resolution for a key.
  public func resolve(_ conflict: Conflict) -> Resolution { decide(conflict).resolution }

  func decide(_ conflict: Conflict) -> Decision {
    switch (conflict.local == nil, conflict.remote == nil, deleteEdit) {
    case (true, true, _): return Decision(resolution: .remote)
    case (false, true, .editSurvives), (true, false, .deleteWins):
      return Decision(resolution: .local)
    case (true, false, .editSurvives), (false, true, .deleteWins):
      return Decision(resolution: .remote)
    default: break
    }
    var decision = body(conflict)
    // A side that has deleted the key leaves nothing to keep beside the other.
    if case .both = decision.resolution, conflict.local == nil { decision.resolution = .remote }
    return decision
  }
}
