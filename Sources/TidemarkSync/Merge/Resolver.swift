public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// A key that this store and another replica have both changed: the input of a
/// ``ConflictResolver``. It holds the two versions and the base from which both began.
public struct SyncConflict: Sendable, Hashable {
  /// The key that both sides have changed.
  public var key: Key
  /// The version that both sides changed; nil if the key did not exist then or the version is
  /// unknown.
  public var base: SyncContent?
  /// The content in this store; nil if it has deleted the key.
  public var local: SyncContent?
  /// The content in the feed; nil if the key is deleted there.
  public var remote: SyncContent?
  /// When the local change was committed, by this store's clock, or by the peer's if this one is
  /// ahead by more than a minute. Its part below the millisecond is a counter that orders changes
  /// of the same millisecond.
  public var localTime: Timestamp
  /// When the remote change was committed, by its writer's clock, or when the peer received it if
  /// that clock was ahead by more than a minute. Nil if the peer gives no time, as some back ends:
  /// then it is unknown which change is later.
  public var remoteTime: Timestamp?
  /// The peer's policy for the key, from its last hello; ``ConflictPolicy/detect`` if there is
  /// none.
  public var policy: ConflictPolicy

  /// Creates a conflict, for tests of a ``ConflictResolver``. In production the replicator creates
  /// them.
  /// - Parameters:
  ///   - key: the key that both sides have changed.
  ///   - base: the version before both changes; nil if absent or unknown.
  ///   - local: this store's version; nil for a delete.
  ///   - remote: the peer's version; nil for a delete.
  ///   - localTime: when the local change was committed.
  ///   - remoteTime: when the remote change was committed; nil if the peer gives no time.
  ///   - policy: the peer's policy for the key.
  public init(
    key: some BytesConvertible, base: SyncContent?, local: SyncContent?, remote: SyncContent?,
    localTime: Timestamp = Timestamp(seconds: 0), remoteTime: Timestamp? = nil,
    policy: ConflictPolicy = .detect
  ) {
    self.policy = policy
    self.key = Key(key)
    self.base = base
    self.local = local
    self.remote = remote
    self.localTime = localTime
    self.remoteTime = remoteTime
  }
}

/// The decision about a ``SyncConflict``: which version the key gets in the store and at the peer.
public enum ConflictResolution: Sendable, Hashable {
  /// The local version wins. The replicator sends it with the remote version as its base.
  case local
  /// The remote version wins and replaces the local one, which stays in the log's history only.
  case remote
  /// The key gets this content, which the resolver made from both versions. The replicator sends
  /// it.
  case merged(SyncContent)
  /// The key gets the remote version. The store also writes the local version under `localKey`, so
  /// that neither is lost.
  case both(localKey: Key)
  /// The resolver does not decide. ``Replicator/conflicts()`` lists both versions until the user
  /// decides.
  case ask
}

/// Decides conflicts between this store and a peer. Choose a ready-made one, such as ``byPolicy``
/// or ``mergeFields(clash:fallback:)``, or write your own. It must be a pure function of the
/// conflict, since the replicator may call it again for the same conflict.
public struct ConflictResolver: Sendable {
  /// Decides a conflict in which one side edited the key and the other side deleted it.
  public enum DeleteEdit: String, Sendable, Hashable, CaseIterable {
    /// The edited version wins, so that the key exists afterwards.
    case editSurvives
    /// The delete wins, so that the key is gone afterwards.
    case deleteWins
    /// The replicator calls the resolver's function, as it does when both sides edited the key.
    case resolve
  }

  /// Which side wins when one edited the key and the other deleted it. The default is
  /// ``DeleteEdit/editSurvives``.
  public var deleteEdit: DeleteEdit
  private let body: @Sendable (SyncConflict) -> Decision

  /// A resolution, with counts of the merge of fields that gave it.
  struct Decision: Sendable, Hashable {
    var resolution: ConflictResolution
    /// How many fields both sides had changed to different values.
    var clashes = 0
    /// Whether the values could not be merged by fields.
    var hasFallenBack = false
  }

  /// Creates a resolver from a function of your program.
  /// - Parameters:
  ///   - deleteEdit: which side wins when one edited the key and the other deleted it.
  ///   - body: returns the resolution of a conflict. It must be a pure function of the conflict.
  public init(
    deleteEdit: DeleteEdit = .editSurvives,
    _ body: @escaping @Sendable (SyncConflict) -> ConflictResolution
  ) {
    self.init(deleteEdit, deciding: { Decision(resolution: body($0)) })
  }

  private init(
    _ deleteEdit: DeleteEdit, deciding body: @escaping @Sendable (SyncConflict) -> Decision
  ) {
    self.deleteEdit = deleteEdit
    self.body = body
  }

  /// The default resolver: it follows the peer's ``ConflictPolicy`` for the key.
  ///
  /// With ``ConflictPolicy/detect``, or without a policy, it decides as ``localWins``. With
  /// ``ConflictPolicy/lastWriterWins`` the later commit wins, deletes included; at equal times the
  /// peer's version wins. The user decides if the peer gives no commit time.
  public static let byPolicy = ConflictResolver(
    .resolve,
    deciding: { conflict in
      switch conflict.policy {
      case .detect: localWins.decide(conflict)
      case .lastWriterWins:
        if let remoteTime = conflict.remoteTime {
          Decision(resolution: conflict.localTime > remoteTime ? .local : .remote)
        } else {
          Decision(resolution: conflict.remote == nil ? .local : .ask)
        }
      }
    })
  /// The local version wins every conflict between two edits. The replicator sends it to the peer.
  /// An edit wins over a delete.
  public static let localWins = ConflictResolver { _ in .local }
  /// The peer's version wins every conflict, deletes included. It replaces the local change.
  public static let remoteWins = ConflictResolver(deleteEdit: .resolve) { _ in .remote }
  /// The user decides every conflict. Read them with ``Replicator/conflicts()`` and decide with
  /// ``Replicator/decide(_:_:)``.
  public static let ask = ConflictResolver(deleteEdit: .resolve) { _ in .ask }

  /// Keeps both versions: the key gets the remote one, and the local one moves to the key with a
  /// suffix. If the longer key exceeds the limit of keys, the user decides.
  /// - Parameter suffix: the text that is appended to the key of the local version.
  public static func keepBoth(suffix: String = " (local)") -> ConflictResolver {
    ConflictResolver { conflict in
      let key = conflict.key.bytes + suffix.utf8
      return key.count <= Limits.keyBytes ? .both(localKey: Key(key)) : .ask
    }
  }

  /// Merges values that are JSON objects field by field: a field that one side changed gets that
  /// side's value. Fields are compared as parsed, so that another order of names, other escapes and
  /// `1.0` for `1` are no change.
  ///
  /// ``SyncReport`` counts merges, fields that clashed, and uses of the fallback.
  /// - Parameters:
  ///   - clash: decides on each field that both sides changed, arrays and scalars as a whole;
  ///     without a base, on each field that differs.
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
      if merge.asksUser { return Decision(resolution: .ask, clashes: merge.clashes) }
      var decision = fallback.decide(conflict)
      decision.clashes += merge.clashes
      decision.hasFallenBack = true
      return decision
    }
  }

  /// Returns the resolution of a conflict, as the replicator would apply it. Call it to test a
  /// resolver.
  public func resolve(_ conflict: SyncConflict) -> ConflictResolution {
    decide(conflict).resolution
  }

  func decide(_ conflict: SyncConflict) -> Decision {
    switch (conflict.local == nil, conflict.remote == nil, deleteEdit) {
    case (true, true, _): return Decision(resolution: .remote)
    case (false, true, .editSurvives), (true, false, .deleteWins):
      return Decision(resolution: .local)
    case (true, false, .editSurvives), (false, true, .deleteWins):
      return Decision(resolution: .remote)
    default: break
    }
    var decision = body(conflict)
    // With the key deleted here, there is no local state to keep under another key.
    if case .both = decision.resolution, conflict.local == nil { decision.resolution = .remote }
    return decision
  }
}

/// One merge of two JSON objects by fields, with the algorithm of ``JSONMerge``.
struct FieldMerge {
  /// The merged content; nil if the fallback has to decide on the whole value.
  private(set) var merged: SyncContent?
  /// How many fields both sides had changed to different values.
  private(set) var clashes = 0
  /// Whether the rule has left a field to the user, so that the user decides on the whole value.
  private(set) var asksUser = false

  private let conflict: SyncConflict
  private let rule: FieldClashRule
  private let fallback: ConflictResolver
  /// The fallback's resolution of the whole value, computed when a field first needs it.
  private lazy var resolution = fallback.resolve(conflict)

  init(_ conflict: SyncConflict, _ rule: FieldClashRule, fallback: ConflictResolver) {
    self.conflict = conflict
    self.rule = rule
    self.fallback = fallback
    guard let local = conflict.local, let remote = conflict.remote,
      let mine = ParsedJSON(local.value), let inner = mine.object,
      let theirs = ParsedJSON(remote.value), let other = theirs.object
    else { return }
    let base = conflict.base.flatMap { ParsedJSON($0.value)?.object }
    let result = JSONMerge.merge(inner, other, base) { choice($0, $1, $2, $3) }
    guard let result else { return }
    let baseAttachment = conflict.base.map(\.attachment)
    // Both sides changed the attachment, which cannot be merged: the fallback decides on all.
    guard
      local.attachment == remote.attachment || local.attachment == baseAttachment
        || remote.attachment == baseAttachment
    else {
      clashes += 1
      return
    }
    var content = SyncContent()
    // If a side's object equals the result, its bytes are used; the remote's first: already there.
    content.value =
      result == theirs ? remote.value : result == mine ? local.value : Array(result.text)
    content.labels = Self.labels(local.labels, remote.labels, conflict.base?.labels ?? [])
    content.maxAgeSeconds = Self.changed(
      local.maxAgeSeconds, remote.maxAgeSeconds, conflict.base.map(\.maxAgeSeconds))
    content.attachment = Self.changed(local.attachment, remote.attachment, baseAttachment)
    // A hash of either side does not fit what was made of both.
    if local.value == remote.value {
      content.hash = Self.changed(local.hash, remote.hash, conflict.base.map(\.hash))
    } else if content.value == local.value {
      content.hash = local.hash
    } else if content.value == remote.value {
      content.hash = remote.hash
    }
    if content.fitsEntry { merged = content }
  }

  /// The labels that either side added, without those that either removed.
  private static func labels(_ local: [EntryLabel], _ remote: [EntryLabel], _ base: [EntryLabel])
    -> [EntryLabel]
  {
    let kept = Set(local).intersection(remote)
    let added = Set(local).union(remote).subtracting(base)
    return kept.union(added).sorted()
  }

  /// The local value, or the remote one if the local side has not changed it.
  private static func changed<T: Equatable>(_ local: T, _ remote: T, _ base: T?) -> T {
    local == base ? remote : local
  }

  private mutating func choice(
    _ local: ParsedJSON?, _ remote: ParsedJSON?, _ base: ParsedJSON?, _ path: [[UInt8]]
  ) -> JSONMerge.Choice {
    clashes += 1
    let clash = FieldClash(
      path: path.map { String(decoding: $0, as: UTF8.self) }, base: base.map { Array($0.text) },
      local: local.map { Array($0.text) }, remote: remote.map { Array($0.text) },
      localTime: conflict.localTime, remoteTime: conflict.remoteTime)
    switch rule.choice(clash, like: resolution) {
    case .local: return .value(local)
    case .remote: return .value(remote)
    case .value(let text): return ParsedJSON(text).map { .value($0) } ?? .undecided
    case .fallback: return .undecided
    case .ask:
      asksUser = true
      return .undecided
    }
  }
}

extension SyncContent {
  /// Whether it is within the limits of an entry.
  var fitsEntry: Bool {
    value.count <= Limits.valueBytes && labels.count <= Limits.labelsPerEntry
  }
}

/// A field that both sides have changed to different values, or that differs without a base.
public struct FieldClash: Sendable, Hashable {
  /// The decision of a ``FieldClashRule`` about one field.
  public enum Choice: Sendable, Hashable {
    /// The field gets the value that it has in this store.
    case local
    /// The field gets the value that it has in the peer's feed.
    case remote
    /// The field gets this JSON text, as UTF-8. Invalid JSON counts as ``fallback``.
    case value([UInt8])
    /// The resolver's fallback decides on the whole value instead of this field.
    case fallback
    /// The user decides on the whole value; see ``ConflictResolution/ask``.
    case ask
  }

  /// The names of the JSON members that lead from the outermost object to the field.
  public var path: [String]
  /// The field's JSON text in the base; nil if the base lacks the field or is unknown.
  public var base: [UInt8]?
  /// Its JSON text in this store; nil if it was removed.
  public var local: [UInt8]?
  /// Its JSON text in the feed; nil if it was removed.
  public var remote: [UInt8]?
  /// When the local change was committed, as in ``SyncConflict/localTime``.
  public var localTime: Timestamp
  /// When the remote change was committed, as in ``SyncConflict/remoteTime``.
  public var remoteTime: Timestamp?

  /// Creates a clash, for tests of a ``FieldClashRule``.
  /// - Parameters:
  ///   - path: the names from the outermost object to the field.
  ///   - base: the field's JSON text before both changes; nil if absent or unknown.
  ///   - local: the field's JSON text in this store; nil if removed.
  ///   - remote: the field's JSON text in the feed; nil if removed.
  ///   - localTime: when the local change was committed.
  ///   - remoteTime: when the remote change was committed; nil if the peer gives no time.
  public init(
    path: [String], base: [UInt8]?, local: [UInt8]?, remote: [UInt8]?,
    localTime: Timestamp = Timestamp(seconds: 0), remoteTime: Timestamp? = nil
  ) {
    self.path = path
    self.base = base
    self.local = local
    self.remote = remote
    self.localTime = localTime
    self.remoteTime = remoteTime
  }
}

/// Decides JSON fields that both sides have changed, for
/// ``ConflictResolver/mergeFields(clash:fallback:)``. It must be a pure function of the clash,
/// since it may run again.
public struct FieldClashRule: Sendable {
  /// Nil to follow the fallback's decision on the whole value.
  private let body: (@Sendable (FieldClash) -> FieldClash.Choice)?

  /// Creates a rule from a function of your program.
  /// - Parameter body: returns the choice for one field, for example by its path. It must be a pure
  ///   function of the clash.
  public init(_ body: @escaping @Sendable (FieldClash) -> FieldClash.Choice) {
    self.body = body
  }

  private init() { body = nil }

  /// A field that both sides changed gets the value of the side that the fallback would let win as
  /// a whole. If the fallback asks, keeps both or merges, it decides on the whole value.
  public static let asFallback = FieldClashRule()
  /// A field that both sides changed keeps this store's value.
  public static let local = FieldClashRule { _ in .local }
  /// A field that both sides changed gets the value in the peer's feed.
  public static let remote = FieldClashRule { _ in .remote }
  /// A field that both sides changed gets the value that was committed later, by its writer's
  /// clock. If the peer gives no commit time, the user decides.
  public static let latest = FieldClashRule { clash in
    clash.remoteTime.map { clash.localTime >= $0 ? .local : .remote } ?? .ask
  }

  func choice(_ clash: FieldClash, like resolution: @autoclosure () -> ConflictResolution)
    -> FieldClash.Choice
  {
    if let body { return body(clash) }
    return switch resolution() {
    case .local: .local
    case .remote: .remote
    case .merged, .both, .ask: .fallback
    }
  }
}
