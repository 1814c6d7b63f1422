public import Tidemark
public import TidemarkEngine
internal import TidemarkSyncProtocol

/// A conflict, the input of a resolver: the base and the two versions made upon it.
public struct Conflict: Sendable, Hashable {
  /// The key.
  public var key: Key
  /// The content that both changes were made upon; nil if the key was absent or the base is
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

  /// A conflict.
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

/// The outcome of a conflict for its key.
public enum Resolution: Sendable, Hashable {
  /// The local state, which is sent with the remote one as its base.
  case local
  /// The remote state; the local change is only in the log's history.
  case remote
  /// A merged state, which is sent.
  case merged(SyncContent)
  /// The remote state, and the local one under another key.
  case both(localKey: Key)
  /// The user decides; until then both states can be read.
  case ask
}

/// Decides conflicts. It must be a pure function of its input, since it may run again.
public struct ConflictResolver: Sendable {
  /// The winner when one side edited and the other deleted.
  public enum DeleteEdit: String, Sendable, Hashable, CaseIterable {
    /// The edit wins.
    case editSurvives
    /// The delete wins.
    case deleteWins
    /// The resolver decides, as on two edits.
    case resolve
  }

  /// The winner when one side edited and the other deleted.
  public var deleteEdit: DeleteEdit
  private let body: @Sendable (Conflict) -> Decision

  /// A resolution, with counts of the merge of fields that gave it.
  struct Decision: Sendable, Hashable {
    var resolution: Resolution
    /// How many fields both sides had changed to different values.
    var clashes = 0
    /// Whether the values could not be merged by fields.
    var hasFallenBack = false
  }

  /// A resolver that the program implements.
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

  /// The default, by the peer's policy for the key: with ``ConflictPolicy/detect``, or without any,
  /// as ``localWins``; with ``ConflictPolicy/lastWriterWins`` the later commit wins, deletes as
  /// well, and of two at the same time the feed's; the user decides if the peer gives no commit
  /// time.
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
  /// Local changes that are not sent yet win.
  public static let localWins = ConflictResolver { _ in .local }
  /// The feed's content replaces local changes.
  public static let remoteWins = ConflictResolver(deleteEdit: .resolve) { _ in .remote }
  /// The user decides.
  public static let ask = ConflictResolver(deleteEdit: .resolve) { _ in .ask }

  /// Keeps both: the remote state, and the local one under the key with a suffix.
  /// - Parameter suffix: what is appended to the key of the local state.
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

  /// The resolution of a conflict.
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

  private let conflict: Conflict
  private let rule: FieldClashRule
  private let fallback: ConflictResolver
  /// The fallback's resolution of the whole value, computed when a field first needs it.
  private lazy var resolution = fallback.resolve(conflict)

  init(_ conflict: Conflict, _ rule: FieldClashRule, fallback: ConflictResolver) {
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
  /// The outcome for the field.
  public enum Choice: Sendable, Hashable {
    /// The value of this store.
    case local
    /// The value of the feed.
    case remote
    /// A JSON text made of both. Invalid JSON counts as ``fallback``.
    case value([UInt8])
    /// The fallback decides on the whole value.
    case fallback
    /// The user decides on the whole value.
    case ask
  }

  /// The names from the outermost object to the field.
  public var path: [String]
  /// The field's JSON text in the base; nil if it had no such field, or is unknown.
  public var base: [UInt8]?
  /// Its JSON text in this store; nil if it was removed.
  public var local: [UInt8]?
  /// Its JSON text in the feed; nil if it was removed.
  public var remote: [UInt8]?
  /// When the local change was committed, as in ``Conflict/localTime``.
  public var localTime: Timestamp
  /// When the remote change was committed, as in ``Conflict/remoteTime``.
  public var remoteTime: Timestamp?

  /// A clash.
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

/// Decides fields that both sides have changed. It must be a pure function, as a resolver is.
public struct FieldClashRule: Sendable {
  /// Nil to follow the fallback's decision on the whole value.
  private let body: (@Sendable (FieldClash) -> FieldClash.Choice)?

  /// A rule that the program implements.
  /// - Parameter body: decides, for example by the path; a pure function.
  public init(_ body: @escaping @Sendable (FieldClash) -> FieldClash.Choice) {
    self.body = body
  }

  private init() { body = nil }

  /// Each such field gets the value of the side that the fallback would let win as a whole. If the
  /// fallback asks, keeps both or merges, it decides on the whole value.
  public static let asFallback = FieldClashRule()
  /// Such fields keep this store's values.
  public static let local = FieldClashRule { _ in .local }
  /// Such fields get the feed's values.
  public static let remote = FieldClashRule { _ in .remote }
  /// Such fields get the value that was committed later, by its writer's clock. If the peer gives
  /// no commit time, the user decides.
  public static let latest = FieldClashRule { clash in
    clash.remoteTime.map { clash.localTime >= $0 ? .local : .remote } ?? .ask
  }

  func choice(_ clash: FieldClash, like resolution: @autoclosure () -> Resolution)
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
