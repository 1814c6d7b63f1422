/// The three states that a conflict is about.
public struct Conflict: Sendable, Hashable {
  /// The key.
  public var key: [UInt8]
  /// What both changes were made upon; nil when the key was absent or nobody knows any more.
  public var base: SyncContent?
  /// What this store holds; nil when it has deleted the key.
  public var local: SyncContent?
  /// What the feed holds; nil when the key was deleted there.
  public var remote: SyncContent?
  /// When the local change was committed, hybrid logical clock.
  public var localTime: UInt64
  /// When the remote change was committed by its writer.
  public var remoteTime: UInt64

  /// A conflict.
  public init(
    key: [UInt8], base: SyncContent?, local: SyncContent?, remote: SyncContent?,
    localTime: UInt64 = 0, remoteTime: UInt64 = 0
  ) {
    self.key = key
    self.base = base
    self.local = local
    self.remote = remote
    self.localTime = localTime
    self.remoteTime = remoteTime
  }
}

/// What becomes of a key on which both sides have written.
public enum Resolution: Sendable, Hashable {
  /// The local state, which is sent on top of the remote one.
  case local
  /// The remote state; the local change stays in the history.
  case remote
  /// A state made of both, which is sent.
  case merged(SyncContent)
  /// The remote state, and the local one under another key.
  case both(localKey: [UInt8])
  /// The user decides; until then both can be read.
  case ask
}

/// Decides conflicts. It must be a pure function of what it is given: it may run again.
public struct ConflictResolver: Sendable {
  /// Who wins when one side edited and the other deleted.
  public enum DeleteEdit: String, Sendable, Hashable, CaseIterable {
    /// The edit stays.
    case editSurvives
    /// The delete stays.
    case deleteWins
    /// The resolver decides as it does of edits.
    case resolve
  }

  /// Who wins when one side edited and the other deleted.
  public var deleteEdit: DeleteEdit
  private let body: @Sendable (Conflict) -> Resolution

  /// A resolver of the program's own.
  /// - Parameters:
  ///   - deleteEdit: who wins when one side edited and the other deleted.
  ///   - body: decides; a pure function.
  public init(
    deleteEdit: DeleteEdit = .editSurvives, _ body: @escaping @Sendable (Conflict) -> Resolution
  ) {
    self.deleteEdit = deleteEdit
    self.body = body
  }

  /// Local changes that were not sent yet stay: the default.
  public static let localWins = ConflictResolver { _ in .local }
  /// What the feed holds replaces local changes.
  public static let remoteWins = ConflictResolver(deleteEdit: .resolve) { _ in .remote }
  /// The user decides.
  public static let ask = ConflictResolver(deleteEdit: .resolve) { _ in .ask }

  /// Both stay, the local state under the key with a suffix.
  /// - Parameter suffix: what the key gets; the remote state keeps the key.
  public static func keepBoth(suffix: String = " (local)") -> ConflictResolver {
    ConflictResolver { conflict in
      let key = conflict.key + Array(suffix.utf8)
      return key.count <= 65_535 ? .both(localKey: key) : .ask
    }
  }

  /// Values that are JSON objects are merged field by field: what one side changed is taken from
  /// it. Fields that both changed, arrays and scalars among them, go by `fallback`, for the whole
  /// value; without a base so do fields that differ.
  public static func mergeFields(
    fallback: ConflictResolver = .localWins
  ) -> ConflictResolver {
    ConflictResolver(deleteEdit: fallback.deleteEdit) { conflict in
      FieldMerge(conflict)?.merged.map { .merged($0) } ?? fallback.resolve(conflict)
    }
  }

  /// What is to become of a key.
  public func resolve(_ conflict: Conflict) -> Resolution {
    switch (conflict.local == nil, conflict.remote == nil, deleteEdit) {
    case (true, true, _): return .remote
    case (false, true, .editSurvives), (true, false, .deleteWins): return .local
    case (true, false, .editSurvives), (false, true, .deleteWins): return .remote
    default: break
    }
    let resolution = body(conflict)
    // A side that has deleted the key leaves nothing to keep beside the other.
    if case .both = resolution, conflict.local == nil { return .remote }
    return resolution
  }
}
