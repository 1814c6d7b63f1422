internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

extension SyncHandler {
  /// Takes a part of a content, ahead of the change that names it: of an attachment, or of a value
  /// that is too large to travel with its change. With no bytes, says how much is there.
  ///
  /// Content that the store has is not wanted once more, unless the caller's authorization reaches
  /// only a part of the entries: who knows a hash need not have the content. It has to be sent then
  /// by this replica, or be what the key's entry names already.
  /// - Throws: ``PeerError``: `malformed` for what makes no sense, and for content that is not what
  ///   its hash says; `forbidden`, `busy`, `unavailable`.
  public func attach(
    _ request: AttachRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> AttachAnswer {
    try settled(\.range) { try stageAttach(request, access) }
  }

  func stageAttach(_ request: AttachRequest, _ access: SyncAccess) throws -> AttachAnswer {
    guard access.canPush else {
      throw PeerError(.forbidden, "the authorization does not allow to write")
    }
    // It need not have come over a wire.
    try WireMessage.attachRequest(request).check()
    guard let engine = feed.contents else {
      throw PeerError(.malformed, "this server takes no content ahead of its change")
    }
    // It may be a value: whether an attachment is too large is told by the hello, and by the push.
    let rejection: Rejection? =
      request.attachment.length > max(options.attachmentBytes, Limits.valueBytes)
      ? .tooLarge(request.attachment, most: options.attachmentBytes)
      : access.mayReach(key: request.key) ? nil : Judge.outOfScope
    return AttachAnswer(
      received: rejection == nil ? try take(request, access, engine) : 0, rejection: rejection,
      range: try range(for: request.replica))
  }

  /// Answers with a part of the content of the attachment that a key's entry names.
  /// - Throws: ``PeerError``.
  public func fetch(
    _ request: ContentRequest, access: SyncAccess = .everything
  ) throws(PeerError) -> ContentAnswer {
    try answering { try stageFetch(request, access) }
  }

  func stageFetch(_ request: ContentRequest, _ access: SyncAccess) throws -> ContentAnswer {
    try WireMessage.fetchRequest(request).check()
    guard let engine = feed.contents, options.attachmentBytes > 0 else {
      throw PeerError(.malformed, "this server takes no attachments")
    }
    let id = request.attachment.engineID
    guard try isNamed(id, by: request.key, access), let reader = try engine.openAttachment(id)
    else { return ContentAnswer(bytes: nil) }
    defer { reader.close() }
    let count = max(0, min(request.limit, reader.length - request.offset))
    return try LargeValues.shared.withRoom(for: count) {
      var part: [UInt8] = []
      part.reserveCapacity(count)
      while part.count < count {
        part += try reader.read(at: request.offset + part.count, count: count - part.count)
      }
      return ContentAnswer(bytes: part)
    }
  }

  /// Whether a key's entry names an attachment, as far as the caller's authorization reaches.
  private func isNamed(
    _ id: AttachmentID, by key: [UInt8], _ access: SyncAccess
  ) throws(TidemarkError) -> Bool {
    guard let state = try feed.states(of: [key])[0], !state.isDeleted else { return false }
    return state.head.attributes.attachment == id
      && access.reaches(key: key, labels: state.head.labels)
  }

  /// Whether a caller may name content that the store has.
  func mayName(
    _ id: AttachmentID, for key: [UInt8], _ access: SyncAccess
  ) throws(TidemarkError) -> Bool {
    if access.scope == nil { return true }
    return try isNamed(id, by: key, access)
  }

  // MARK: Taking parts

  /// Bytes of what an earlier opening has left that one call reads again.
  static let bytesPerLook = 256 << 20
  static let isBeingRead = PeerError(
    .busy, "what has come of a content is being read again", retryAfter: .seconds(0))
  /// Room on the disk that content does not take.
  private static let bytesLeftFree = 64 << 20

  /// - Returns: how much is there.
  private func take(
    _ request: AttachRequest, _ access: SyncAccess, _ engine: Engine
  ) throws -> Int {
    let id = request.attachment.engineID
    let name = ArrivingAttachments.Name(replica: request.replica, attachment: id)
    if try mayName(id, for: request.key, access), try engine.holdContent(of: id) != nil {
      return request.attachment.length
    }
    let begins = !request.bytes.isEmpty || request.attachment.length == 0
    if begins { try makeRoom(for: request, name, engine) }
    guard
      let part = try engine.attachmentPart(of: id, for: request.replica.bytes, begins: begins)
    else { return 0 }
    feed.arriving.withLock { $0[name] = part }
    do throws(TidemarkError) {
      if try part.look(most: Self.bytesPerLook) {
        return try part.append(request.bytes, at: request.offset, now: feed.now.sinceEpoch)
      }
    } catch {
      if part.isOver { feed.arriving.withLock { $0.forget(part, of: request.replica) } }
      guard error.code == .damaged else { throw error }
      throw PeerError(.malformed, "a content is not what its hash says")
    }
    throw Self.isBeingRead
  }

  /// An upload that goes on is left alone: a newcomer that took its room would lose it in turn. One
  /// that nobody has gone on with for so long goes.
  private static let millisecondsUndisturbed: UInt64 = 60_000
  static let millisecondsKept: UInt64 = 7 * 86_400_000

  private func makeRoom(
    for request: AttachRequest, _ name: ArrivingAttachments.Name, _ engine: Engine
  ) throws {
    let idle = feed.time(before: Self.millisecondsUndisturbed)
    try feed.arriving.withLock { (arriving: inout ArrivingAttachments) throws(PeerError) in
      dropOldContent(&arriving, but: name)
      func isFull() -> Bool {
        if arriving.bytes + request.bytes.count > options.attachmentUploadBytes { return true }
        // Whole contents wait for their batch, which may name as many.
        return arriving[name] == nil
          && (arriving.unfinished >= options.attachmentUploads
            || arriving.count >= options.attachmentUploads + options.limits.changes)
      }
      guard isFull() else { return }
      for old in arriving.untouched(since: idle, but: name) where isFull() { arriving.drop(old) }
      guard !isFull() else {
        throw PeerError(.busy, "too many contents are on their way", retryAfter: .seconds(10))
      }
    }
    let rest = request.attachment.length - request.offset
    guard let free = engine.attachments.freeBytes, free < rest + Self.bytesLeftFree else { return }
    throw PeerError(
      .busy, "the disk has no room for \(rest) more bytes of a content",
      retryAfter: .seconds(60))
  }

  /// Gives up what nobody has gone on with for so long.
  func dropOldContent(
    _ arriving: inout ArrivingAttachments, but name: ArrivingAttachments.Name? = nil
  ) {
    let time = feed.time(before: Self.millisecondsKept)
    for old in arriving.untouched(since: time, but: name) { arriving.drop(old) }
  }
}

/// The content that comes, or has come, for changes that a feed does not have yet: attachments, and
/// values that are too large to travel with their changes.
package struct ArrivingAttachments: Sendable {
  struct Name: Sendable, Hashable {
    var replica: ReplicaID
    var attachment: AttachmentID
  }

  private var parts: [Name: AttachmentPartFile] = [:]

  package init() {}

  /// Finds what an earlier opening has left.
  init(_ engine: Engine) throws(TidemarkError) {
    guard engine.configuration.access != .readOnly else { return }
    for (name, part) in try engine.attachments.parts() {
      // Contents that this store fetches itself come for nobody.
      guard let replica = ReplicaID(name.owner), replica != .none else { continue }
      part.capTouched(at: engine.environment.clock.now().sinceEpoch)
      parts[Name(replica: replica, attachment: part.id)] = part
    }
  }

  /// How many there are.
  var count: Int { parts.count }
  /// How many of them are on their way.
  var unfinished: Int { parts.values.count { !$0.mayBeWhole } }
  /// Their bytes on the disk.
  var bytes: Int { parts.values.reduce(0) { $0 + $1.storedBytes } }

  /// The same of those that nobody has gone on with since.
  func bytes(untouchedSince time: UInt64) -> Int {
    parts.values.reduce(0) { $0 + ($1.touched < time ? $1.storedBytes : 0) }
  }

  subscript(name: Name) -> AttachmentPartFile? {
    get { parts[name] }
    set { parts[name] = newValue }
  }

  /// Contents that nobody has gone on with since, the longest idle first.
  func untouched(since time: UInt64, but name: Name? = nil) -> [Name] {
    parts.map { ($0.key, $0.value.touched) }.filter { $0.1 < time && $0.0 != name }
      .sorted { $0.1 < $1.1 }.map(\.0)
  }

  /// Gives up what has come.
  mutating func drop(_ name: Name) { parts.removeValue(forKey: name)?.cancel() }

  /// Forgets a part file that is over, unless another one has begun under its name.
  mutating func forget(_ part: AttachmentPartFile, of replica: ReplicaID) {
    let name = Name(replica: replica, attachment: part.id)
    if parts[name] === part { parts[name] = nil }
  }
}
