internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// Devices that start again, and stores that are copies of others.
extension SyncOracle {
  /// A device has started again.
  /// - Parameter lostVerdicts: whether it had been told of verdicts that it had not written down.
  func comesBack(_ device: SimulatedDevice, lostPower: Bool, lostVerdicts: Bool) throws {
    let former = books[device.index]
    guard device.engine.reader.lastSequence >= former.durableThrough else {
      throw BrokenPromise("d\(device.index) has lost what was durable")
    }
    // Answers that it was told of may be lost with the power: it knows what its log says.
    if lostPower || lostVerdicts { former.known = [:] }
    try readAll(device)
    // The mark tells again what it was told and had not synced, unless a copy of it has sent more
    // under the same name meanwhile.
    if lostPower || lostVerdicts, hasCopies { books[device.index].forgetCounting() }
    if lostPower {
      books[device.index].shownFromHere()
      return
    }
    let now = books[device.index]
    for (key, seen) in former.newest where seen.content != .deleted {
      guard now.newest[key] == seen else {
        throw BrokenPromise("d\(device.index) reads \(name(key)) otherwise after it was opened")
      }
    }
    books[device.index].shown = former.shown
    books[device.index].durableThrough = former.durableThrough
    for (key, seen) in former.newest
    where former.pending.contains(seen.sequence) && !now.pending.contains(seen.sequence) {
      // A compaction may take a delete of what nobody has heard of, or that a feed had.
      if seen.content == .deleted, now.newest[key] == nil, isTold(seen, key) || wasReplaced {
        continue
      }
      throw BrokenPromise("d\(device.index) has forgotten that \(seen.sequence) is pending")
    }
    if !lostVerdicts { try checkPendingAgain(former, now, device) }
  }

  private func checkPendingAgain(
    _ former: DeviceLedger, _ now: DeviceLedger, _ device: SimulatedDevice
  ) throws {
    for (key, seen) in now.newest
    where now.pending.contains(seen.sequence) && !former.pending.contains(seen.sequence) {
      // An entry found to be none of the server's business is looked at once more, even if a former
      // life of the device has sent it, or a server had it that is no more.
      let isOutside =
        seen.content != .deleted && !device.session.scope.contains(key: key, labels: seen.labels)
      let isGone = wasReplaced && seen.content == .deleted
      let names = accepted[Fate(key, seen.content, seen.sequence)] ?? []
      let wasThere = names.contains { writers[$0]?.contains(device.index) ?? false }
      guard isOutside || isDone(seen, key, device) && (isGone || !wasThere) else {
        throw BrokenPromise("d\(device.index) counts \(seen.sequence) as pending again")
      }
    }
  }

  /// A device's store is a copy, or an older one.
  func beginAnew(_ device: SimulatedDevice) throws {
    books[device.index].known = [:]
    books[device.index].knewRemote = [:]
    books[device.index].told = []
    books[device.index].counting = [:]
    books[device.index].countingHere = [:]
    books[device.index].sent = []
    books[device.index].newest = [:]
    books[device.index].outside = []
    try readAll(device)
    books[device.index].shownFromHere()
    outdated = [:]
    for seen in books[device.index].newest.values where seen.isOwn {
      copied.insert(seen.content)
    }
  }

  private func readAll(_ device: SimulatedDevice) throws {
    _ = device.takeAnswers()
    let older = books[device.index]
    let book = DeviceLedger(device.index)
    book.known = older.known
    book.knewRemote = older.knewRemote
    // A delete may have gone from the log meanwhile.
    for (key, seen) in older.newest { forgetDeleted(seen, key, book) }
    book.everKnown = older.everKnown
    book.counting = older.counting
    book.countingHere = older.countingHere
    book.sent = older.sent
    book.feed = older.feed
    book.wasScoped = older.wasScoped
    book.outside = older.outside
    book.told = older.told.filter { $0 <= device.engine.reader.lastSequence }
    cacheBooks[device.index].beginAnew()
    for entry in try ObservedEntry.all(in: device.engine, after: 0) {
      if try isOfCache(entry, on: device.index, isNew: false) { continue }
      var seen = Seen(entry)
      forgetDeleted(book.newest[entry.key], entry.key, book)
      if seen.content == .deleted {
        // Versions that have become known since, and may be gone again, do not count.
        (seen.knewRemote, seen.knewCopies) =
          book.knewRemote[seen.sequence] ?? knowsRemote(entry.key, book)
        book.knewRemote[seen.sequence] = (seen.knewRemote, seen.knewCopies)
      }
      book.learn(entry.key, seen.content)
      book.newest[entry.key] = seen
      // As when it came.
      if !seen.isOwn, seen.content == .deleted { book.known[entry.key] = nil }
    }
    book.lastSeen = device.engine.reader.lastSequence
    book.lookAtPending(device.session)
    books[device.index] = book
  }
}
