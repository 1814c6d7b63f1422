internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// The oracle's view of the network.
extension SyncOracle {
  /// A call that goes out.
  func note(_ call: WireMessage, from device: SimulatedDevice) throws {
    narrator?.call(call, from: device)
    if case .valuesRequest(let request) = call { books[device.index].asked = request.keys }
    guard case .pushRequest(let request) = call else { return }
    writers[request.replica, default: []].insert(device.index)
    let name = BatchName(replica: request.replica, number: request.number, id: request.batchID)
    let book = books[device.index]
    for change in request.changes where cachedContents.contains(Content(change)) {
      throw BrokenPromise("d\(device.index) sends what its cache has of \(self.name(change.key))")
    }
    book.sent.insert(name)
    guard batches.updateValue(request.changes, forKey: name) == nil else { return }
    for change in request.changes {
      let operation = OperationID(replica: request.replica, sequence: change.sequence)
      firstBatch[operation] = min(firstBatch[operation] ?? .max, request.number)
      // Under whichever name.
      let position = book.counting[operation] ?? book.countingHere[change.sequence]
      if let position, book.range?.contains(position) ?? false {
        throw BrokenPromise(
          "d\(device.index) sends \(change.sequence) again, which it knows to count already")
      }
    }
  }

  /// An answer that the server gives.
  func note(_ answer: WireMessage, to call: WireMessage) {
    guard let mark = answer.mark, let replica = call.replica,
      let changes = batches[BatchName(replica, mark)]
    else { return }
    for (change, verdict) in zip(changes, mark.verdicts) {
      switch verdict {
      case .lost, .rejected, .duplicate:
        documented.insert(Fate(change.key, Content(change), change.sequence))
      case .applied, .conflict, .aborted: break
      }
    }
  }

  /// An answer that a device takes: it knows what stands in it.
  func note(_ answer: WireMessage, at device: SimulatedDevice) {
    narrator?.answer(answer, at: device)
    let book = books[device.index]
    if let range = answer.range, book.range?.epochs != range.epochs {
      // Entries that the feed has lost are known no more, even if they come back.
      book.countingHere = book.countingHere.filter { range.contains($0.value) }
      book.counting = book.counting.filter { range.contains($0.value) }
    }
    book.range = answer.range ?? book.range
    if case .helloAnswer(let hello) = answer, book.feed != hello.feed {
      // Entries that it has sent to another feed are known no more.
      book.feed = hello.feed
      book.sent = []
      book.countingHere = [:]
    }
    noteVerdicts(answer, at: device)
    let entries = answer.entries
    // Nothing is taken of an answer under another reach than the hello's.
    if let reach = device.session.reach, let now = answer.reach, now != reach { return }
    if case .valuesAnswer(let values) = answer {
      // A key that is not there any more, nor its delete, leaves nothing to be deleted.
      let found = Set(entries.map(\.key))
      for key in book.asked.prefix(values.answered) where !found.contains(key) {
        book.known[key] = nil
      }
    }
    // Only the last of several entries of a key in one answer shows.
    let last = Dictionary(entries.map { ($0.key, $0.position) }) { $1 }
    for entry in entries where last[entry.key] == entry.position {
      switch entry.kind {
      case .put
      where isLeftToFeed(entry, in: answer, of: device)
        || isPassedOver(entry, in: answer, of: device):
        break
      case .put: book.learn(entry.key, Content(entry.content))
      // It knows that the key holds something that is none of its business, if it had the key
      // from there.
      case .left:
        guard let shown = book.newest[entry.key], shown.content != .deleted,
          !shown.isOwn || wasThere(shown, entry.key)
            || hasEnded(shown, entry.key) && !device.session.isPending(shown.sequence)
        else { continue }
        book.learn(entry.key, contents[entry.operation] ?? .deleted)
      case .delete, .own: break
      }
    }
  }

  /// Whether a comparison shows a device something at the key of a change that waits, which it is
  /// to take from the feed: if the authorization changes before, it never does.
  private func isLeftToFeed(
    _ entry: FeedEntry, in answer: WireMessage, of device: SimulatedDevice
  ) -> Bool {
    let progress = device.session.progress
    guard answer.kind == .valuesAnswer, progress.resync?.keepsCursor ?? false,
      entry.position.offset > progress.cursor.offset,
      let newest = books[device.index].newest[entry.key]
    else { return false }
    return newest.isOwn && device.session.isPending(newest.sequence)
  }

  /// Whether a device that has compared everything, and found nothing at the key, comes upon the
  /// key in what it reads once more for its own operations.
  private func isPassedOver(
    _ entry: FeedEntry, in answer: WireMessage, of device: SimulatedDevice
  ) -> Bool {
    answer.kind == .pullAnswer && books[device.index].newest[entry.key] == nil
      && entry.position.offset <= device.session.progress.comparedThrough.offset
  }

  /// The verdicts that an answer tells of the batch under way. Those on one that was settled tell
  /// nothing, even if they are others by now; nor do those on an earlier one of the same number.
  private func noteVerdicts(_ answer: WireMessage, at device: SimulatedDevice) {
    let name = device.session.replica
    guard let mark = answer.mark, let batchInFlight = device.session.batchInFlight,
      mark.number == batchInFlight.number, mark.batchID == batchInFlight.batchID,
      let changes = batches[BatchName(name, mark)]
    else { return }
    let book = books[device.index]
    let isOwn = book.sent.contains(BatchName(name, mark))
    for (change, verdict) in zip(changes, mark.verdicts) {
      guard case .applied(let position) = verdict else { continue }
      let operation = OperationID(replica: name, sequence: change.sequence)
      book.counting[operation] = position
      if isOwn { book.countingHere[change.sequence] = position }
    }
  }
}
