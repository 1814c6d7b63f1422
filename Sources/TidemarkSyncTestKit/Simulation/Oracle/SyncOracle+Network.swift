internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

/// What goes over the network.
extension SyncOracle {
  /// A call that goes out.
  mutating func note(_ call: SyncSession.Call, from device: SimulatedDevice) throws {
    guard case .push(let request) = call else { return }
    writers[request.replica, default: []].insert(device.index)
    let name = BatchName(replica: request.replica, number: request.number, id: request.batchID)
    guard batches.updateValue(request.changes, forKey: name) == nil else { return }
    let book = books[device.index]
    for change in request.changes {
      let operation = OperationID(replica: request.replica, sequence: change.sequence)
      firstBatch[operation] = min(firstBatch[operation] ?? .max, request.number)
      if let position = book.counting[operation], book.range?.contains(position) ?? false {
        throw BrokenPromise(
          "d\(device.index) sends \(change.sequence) again, which it knows to count already")
      }
    }
  }

  /// An answer that the server gives.
  mutating func note(_ answer: SyncSession.Answer, to call: SyncSession.Call) {
    guard let mark = answer.mark, let changes = batches[BatchName(call.replica, mark)]
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
  mutating func note(_ answer: SyncSession.Answer, at device: SimulatedDevice) {
    let replica = device.session.replica
    books[device.index].range = answer.range
    if let mark = answer.mark, let changes = batches[BatchName(replica, mark)] {
      for (change, verdict) in zip(changes, mark.verdicts) {
        guard case .applied(let position) = verdict else { continue }
        let operation = OperationID(replica: replica, sequence: change.sequence)
        books[device.index].counting[operation] = position
      }
    }
    let entries: [FeedEntry] =
      switch answer {
      case .pull(let page): page.entries
      case .values(let values): values.entries
      default: []
      }
    for entry in entries {
      switch entry.kind {
      case .put: books[device.index].learn(entry.key, Content(entry.content))
      // It knows that the key holds something that is none of its business.
      case .left: books[device.index].learn(entry.key, contents[entry.operation] ?? .deleted)
      case .delete, .own: break
      }
    }
  }
}
