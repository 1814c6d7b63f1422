internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer

/// Promises about the content of attachments.
extension SyncOracle {
  /// An entry that is in the feed has its content on the server's disk, as long as it is the key's
  /// state.
  func checkContent(of entry: ObservedEntry, _ server: SimulatedServer) throws {
    guard entry.kind == .put, let id = entry.attachment else { return }
    attachedInFeed.insert(id)
    // A sweep takes what a later entry of the key has made superfluous.
    guard let slot = try server.feed.engine?.reader.slot(ofKey: entry.key.rawSpan),
      slot.sequence == entry.sequence
    else { return }
    guard let reader = try server.feed.engine?.openAttachment(id) else {
      throw BrokenPromise("\(name(entry.key)) is in the feed without the content it names")
    }
    reader.close()
  }

  /// Content that no feed has ever named is at the device that has written it.
  func checkPendingContent(of device: SimulatedDevice) throws {
    let book = books[device.index]
    for (key, seen) in book.newest {
      guard let id = seen.attachment, seen.isOwn, !seen.isBroughtBack,
        book.pending.contains(seen.sequence), !attachedInFeed.contains(id)
      else { continue }
      guard let reader = try device.engine.openAttachment(id) else {
        throw BrokenPromise(
          "d\(device.index) has let go of the content of its write \(seen.sequence) to "
            + "\(name(key)), which nobody has acknowledged")
      }
      reader.close()
    }
  }

  /// Content that is held in the end can be read at the server, whole, and had from there.
  func checkContent(_ devices: [SimulatedDevice], _ server: SimulatedServer) throws {
    for (key, seen) in try server.feed.state() {
      guard let id = seen.attachment else { continue }
      guard let reader = try server.feed.engine?.openAttachment(id) else {
        throw BrokenPromise("the server lacks the content of \(name(key)) at the end")
      }
      try reader.verify()
      reader.close()
      for device in devices where try device.engine.openAttachment(id) == nil {
        guard device.session.scope.contains(key: key, labels: seen.labels) else { continue }
        try fetch(id, key, device, server)
      }
    }
  }

  private func fetch(
    _ id: AttachmentID, _ key: [UInt8], _ device: SimulatedDevice, _ server: SimulatedServer
  ) throws {
    let replica = device.session.replica
    guard
      let part = try device.engine.attachmentPart(of: id, for: replica.bytes, begins: true)
    else { throw BrokenPromise("d\(device.index) cannot take content") }
    while part.received < Int(id.length) {
      let answer = try server.handler.fetch(
        ContentRequest(
          replica: replica, key: key, attachment: AttachmentReference(id), offset: part.received,
          limit: AttachRequest.partBytes))
      let before = part.received
      guard let bytes = answer.bytes, try part.append(bytes, at: before, now: 0) > before else {
        throw BrokenPromise("d\(device.index) cannot fetch the content of \(name(key))")
      }
    }
    // It compares the hash.
    _ = try part.finish()
  }
}
