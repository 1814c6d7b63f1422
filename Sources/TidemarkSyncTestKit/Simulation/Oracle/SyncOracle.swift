internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

/// The promises that must hold whatever happens: a model of what users wrote and what became of it,
/// made from the logs of the stores and from what went over the network, and of nothing that the
/// code under test says of itself but whether a change is pending.
final class SyncOracle {
  struct BatchName: Hashable {
    var replica: ReplicaID
    var number: UInt64
    var id: BatchID

    init(replica: ReplicaID, number: UInt64, id: BatchID) {
      self.replica = replica
      self.number = number
      self.id = id
    }

    init(_ replica: ReplicaID, _ mark: ReplicaMark) {
      self.init(replica: replica, number: mark.number, id: mark.batchID)
    }
  }

  /// Hears of all that is seen; nil for nobody.
  var narrator: SyncNarrator?
  /// By device.
  var books: [DeviceLedger] = []
  /// The contents of the devices' caches.
  var cacheBooks: [CacheBook] = []
  /// All contents that caches were given: no replica has any business with them.
  var cachedContents: Set<Content> = []
  /// The feed as it is now.
  var line = FeedLine()
  /// Contents that others write as well, or make by merging.
  var common: Set<Content> = []
  /// Contents that may come back besides: a copy of a store held them before they were sent.
  var copied: Set<Content> = []
  /// Whether a server has dropped its history.
  var hasServerDropped = false
  /// Whether there are copies of devices.
  var hasCopies = false
  /// Whether a device has dropped its history.
  var hasDroppedHistory = false
  /// How often another store was put in the server's place: what its devices bring back is new to
  /// it.
  var timesReplaced = 0
  var wasReplaced: Bool { timesReplaced > 0 }
  /// Changes that were in a feed, and the names under which they came.
  var accepted: [Fate: Set<ReplicaID>] = [:]
  /// When keys were deleted in a feed, by the clocks of those who did.
  private var deleted: [[UInt8]: Set<UInt64>] = [:]
  /// The attachments that entries of a feed have named.
  var attachedInFeed: Set<AttachmentID> = []
  /// The contents that operations gave their keys.
  var contents: [OperationID: Content] = [:]
  /// By key and content: what has stood behind it in a life of the feed.
  var followers: [[UInt8]: [Content: Set<Content>]] = [:]
  /// All that keys have ever held in a feed.
  private var inFeed: [[UInt8]: Set<Content>] = [:]
  /// Changes that the server has told the end of: lost, refused, or the same was there.
  var documented: Set<Fate> = []
  var batches: [BatchName: [PushedChange]] = [:]
  /// The first batch that a change was in.
  var firstBatch: [OperationID: UInt64] = [:]
  /// The devices that have written under a name: several where stores were copied.
  var writers: [ReplicaID: Set<Int>] = [:]
  /// The contents that keys must not hold in the end: the server was restored to it, and somebody
  /// knew better.
  var outdated: [[UInt8]: Outdated] = [:]

  // MARK: The feed

  /// Looks at what the feed has got.
  func observe(_ server: SimulatedServer) throws {
    let entries = try server.feed.entries(after: line.lastSeen)
    line.lastSeen = server.feed.head
    try checkMarks(entries, server)
    for entry in entries {
      narrator?.entry(entry, of: nil)
      try checkContent(of: entry, server)
      try checkIsNoCachesDoing(entry, "the feed")
      // A loser by policy does not count.
      guard let operation = entry.origin, entry.kind != .loser else { continue }
      // Entries that a restored server has dropped with its history cannot be found there.
      let mayBeGone = wasReplaced && hasServerDropped
      guard line.operations.insert(operation).inserted || mayBeGone else {
        throw BrokenPromise("\(name(entry.key)) counts twice in the feed: \(operation)")
      }
      let writer = FeedLine.Writer(replica: operation.replica.bytes, key: entry.key)
      if let last = line.last[writer], last > operation.sequence, !mayBeGone {
        throw BrokenPromise(
          "\(name(entry.key)): operation \(operation.sequence) stands after \(last) in the feed")
      }
      line.last[writer] = operation.sequence
      accepted[Fate(entry.key, entry.content, operation.sequence), default: []]
        .insert(operation.replica)
      // A log that is read again was judged by the policies of its time.
      let isNew = contents.updateValue(entry.content, forKey: operation) == nil
      if entry.content == .deleted {
        deleted[entry.key, default: []].insert(entry.commitTime)
      } else {
        inFeed[entry.key, default: []].insert(entry.content)
      }
      let former = line.state[entry.key] ?? .deleted
      if entry.content != .deleted, former != entry.content, !wasReplaced,
        line.shown[entry.key]?.contains(entry.content) ?? false,
        !mayReturn(entry.content)
      {
        throw BrokenPromise("\(name(entry.key)) has an old value again in the feed")
      }
      if isNew, former != .deleted, former != entry.content,
        Self.policy(for: entry.key, server) == .detect,
        !(writers[operation.replica] ?? []).contains(where: {
          books[$0].hasEverKnown(entry.key, former)
        })
      {
        throw BrokenPromise(
          "\(name(entry.key)) was written over by somebody who did not know what it held")
      }
      noteOrder(entry)
      line.state[entry.key] = entry.content
      line.shown[entry.key, default: []].insert(entry.content)
    }
  }

  /// A batch and its mark are in the feed together, or neither is.
  private func checkMarks(_ entries: [ObservedEntry], _ server: SimulatedServer) throws {
    var marks: [ReplicaID: UInt64] = [:]
    for case let operation? in entries.lazy.map(\.origin) {
      guard let first = firstBatch[operation] else { continue }
      let replica = operation.replica
      let number =
        try marks[replica]
        ?? server.handler.feed.look(FeedQuestion(of: replica)).mark.mark.number
      marks[operation.replica] = number
      guard first <= number else {
        throw BrokenPromise("the feed has \(operation), and no mark of its batch")
      }
    }
  }

  private static func policy(
    for key: [UInt8], _ server: SimulatedServer
  ) -> ConflictPolicy {
    server.handler.policies.policy(for: key)
  }

  /// The server has started again.
  func comesBack(_ server: SimulatedServer) throws {
    // Entries that it has answered are durable; what it has not may be gone again.
    guard server.feed.head >= line.lastSeen else {
      return try forgetEnd(of: server)
    }
    try observe(server)
  }

  /// The last entries were never answered, and are gone.
  private func forgetEnd(of server: SimulatedServer) throws {
    line = FeedLine()
    try observe(server)
  }

  // MARK: Devices

  /// Looks at what a device's log has got.
  func observe(_ device: SimulatedDevice) throws {
    let answers = device.takeAnswers()
    for answer in answers {
      // A merge of the same fields may make the same content again.
      if case .merged(let content) = answer.resolution { common.insert(Content(content)) }
      noteKept(by: answer)
    }
    let book = books[device.index]
    book.wasScoped = book.wasScoped || !device.session.scope.isEverything
    for entry in try ObservedEntry.all(in: device.engine, after: book.lastSeen) {
      narrator?.entry(entry, of: device)
      if try isOfCache(entry, on: device.index) { continue }
      let former = book.newest[entry.key]
      var seen = Seen(entry)
      forgetDeleted(former, entry.key, book)
      if seen.content == .deleted {
        (seen.knewRemote, seen.knewCopies) = knowsRemote(entry.key, book)
        book.knewRemote[seen.sequence] = (seen.knewRemote, seen.knewCopies)
      }
      if let former, former.isOwn, !seen.isOwn, former.content != seen.content,
        !book.told.contains(former.sequence), !isTold(former, entry.key),
        !isOutlived(former, by: seen, entry.key, book),
        !answers.contains(where: { $0.gives(way: former, to: seen, entry.key) })
      {
        throw BrokenPromise(
          "d\(device.index) has lost its write \(former.sequence) to \(name(entry.key))")
      }
      noteGivenWay(former, to: seen, entry.key, answers, by: device.index)
      book.newest[entry.key] = seen
      // A key that others deleted need not be deleted once more.
      if !seen.isOwn, seen.content == .deleted {
        book.known[entry.key] = nil
      }
      if seen.isEvicted {
        // It may come back, also after something was written where it seemed to be gone.
        book.shown[entry.key] = nil
      } else {
        try show(seen, entry.key, book)
      }
    }
    book.lastSeen = device.engine.reader.lastSequence
    book.lookAtPending(device.session)
  }

  func mayReturn(_ content: Content) -> Bool {
    common.contains(content) || copied.contains(content)
  }

  /// Once the feed has a device's delete, it need not be told of another one before somebody
  /// writes the key again.
  func forgetDeleted(_ former: Seen?, _ key: [UInt8], _ book: DeviceLedger) {
    guard let former, former.isOwn, former.content == .deleted,
      accepted[Fate(key, .deleted, former.sequence)] != nil
    else { return }
    book.known[key] = nil
  }

  /// Whether a device knows of a value that the key had in the feed, and whether it may not know
  /// that it was there.
  func knowsRemote(_ key: [UInt8], _ book: DeviceLedger) -> (Bool, isCopy: Bool) {
    let known = (inFeed[key] ?? []).intersection(book.known[key] ?? []).subtracting(common)
    return (!known.isEmpty, known.allSatisfy(copied.contains))
  }

  private func show(_ seen: Seen, _ key: [UInt8], _ book: DeviceLedger) throws {
    book.learn(key, seen.content)
    let former = book.shown[key] ?? []
    guard former.last != seen.content else { return }
    // A change out of scope may be based on one that went with the device's history; then it
    // meets that as something else's, and the resolver may let it win.
    let isForgotten = hasDroppedHistory && book.wasScoped
    if seen.content != .deleted, former.contains(seen.content), !wasReplaced, !isForgotten,
      !mayReturn(seen.content)
    {
      throw BrokenPromise("\(name(key)) has an old value again on d\(book.device)")
    }
    book.shown[key, default: []].append(seen.content)
  }

  /// Whether the end of a write is known: it was in a feed, or the server has said why not.
  func isTold(_ seen: Seen, _ key: [UInt8]) -> Bool {
    if hasEnded(seen, key) { return true }
    // Nobody need hear of a delete of what nobody has heard of.
    return seen.content == .deleted
      && (!seen.knewRemote || (line.state[key] ?? .deleted) == .deleted)
  }

  /// Whether a write was in a feed. A copy of a device, and one that brings back what a server had
  /// lost, know their own by its time and content, so that a delete by somebody else at the very
  /// same time is theirs as well.
  func wasThere(_ seen: Seen, _ key: [UInt8]) -> Bool {
    if accepted[Fate(key, seen.content, seen.sequence)] != nil { return true }
    return seen.content == .deleted && (hasCopies || wasReplaced)
      && deleted[key]?.contains(seen.commitTime) ?? false
  }

  /// The same for what a server has had or told of, which stays so.
  func hasEnded(_ seen: Seen, _ key: [UInt8]) -> Bool {
    wasThere(seen, key) || documented.contains(Fate(key, seen.content, seen.sequence))
  }

  /// Whether a delete of what a server that was replaced had lost, or that a former life of the
  /// device had sent, met something that it was not
  /// made upon: an edit survives.
  private func isOutlived(
    _ former: Seen, by seen: Seen, _ key: [UInt8], _ book: DeviceLedger
  ) -> Bool {
    guard former.content == .deleted else { return false }
    if former.isBroughtBack { return true }
    // A delete out of scope needs no peer, and goes with the history.
    if hasDroppedHistory, book.wasScoped { return true }
    guard wasReplaced || former.knewCopies else { return false }
    // Its base may have gone with the device's history, as it was confirmed once.
    return hasDroppedHistory || !(book.shown[key]?.contains(seen.content) ?? false)
  }

  /// Whether a write need not be pending: its end is known, or it is none of the server's business,
  /// being out of scope, or a delete of what a server that was replaced does not have, or of what
  /// a former life of the device or a copy of it may have sent. If the device meets what it has
  /// deleted, that must not undo the delete.
  func isDone(_ seen: Seen, _ key: [UInt8], _ device: SimulatedDevice) -> Bool {
    if isTold(seen, key) { return true }
    if seen.content == .deleted {
      // A change that was out of scope, too, goes with the history.
      let isScoped =
        !device.session.scope.isEverything
        || books[device.index].outside.contains(seen.sequence)
      return wasReplaced || seen.knewCopies || hasDroppedHistory && isScoped
    }
    return !device.session.scope.contains(key: key, labels: seen.labels)
  }

  /// A device is about to want other entries: deletes that were none of the server's business may
  /// have gone with the history, so that nobody hears of them once they are; and what the server
  /// has lost need not come back from this device.
  func scopeChanges(of device: SimulatedDevice, to scope: SyncScope) {
    if !scope.isEverything {
      for key in Array(outdated.keys) { noLonger(device.index, keeps: key) }
    }
    guard !device.session.scope.isEverything else { return }
    let book = books[device.index]
    for seen in book.newest.values where seen.isOwn && seen.content == .deleted {
      book.outside.insert(seen.sequence)
    }
  }

  /// A device's authorization is about to reach other entries: as when it wants others.
  func reachChanges(of device: SimulatedDevice) {
    for key in Array(outdated.keys) { noLonger(device.index, keeps: key) }
    books[device.index].wasScoped = true
  }

  /// Nothing leaves pending without a verdict.
  func checkPending(of device: SimulatedDevice, _ server: SimulatedServer) throws {
    // Before the hello a new scope is not known to be one.
    guard device.session.range != nil else { return }
    let book = books[device.index]
    book.lookAtPending(device.session)
    try checkPendingContent(of: device)
    for (key, seen) in book.newest
    where seen.isOwn && !book.pending.contains(seen.sequence)
      && !book.told.contains(seen.sequence)
    {
      // A key that was not there when it was deleted may be written anew by others.
      if isTold(seen, key) {
        book.told.insert(seen.sequence)
        continue
      }
      guard isDone(seen, key, device) else {
        throw BrokenPromise(
          "d\(device.index): write \(seen.sequence) to \(name(key)) is not pending, "
            + "and nobody has it")
      }
    }
  }

  func name(_ key: [UInt8]) -> String { String(decoding: key, as: UTF8.self) }
}
