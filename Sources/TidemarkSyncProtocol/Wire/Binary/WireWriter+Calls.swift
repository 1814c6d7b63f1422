internal import TidemarkEngine

/// Messages as a whole, field by field as in `WireProtocol.md`.
extension WireWriter {
  mutating func write(_ request: HelloRequest) {
    replica(request.replica)
    out.u8(
      (request.hasResynced ? WireFlags.hasResynced : 0)
        | (request.reads ? 0 : WireFlags.readsNothing))
    position(request.cursor)
    write(request.scope)
  }

  mutating func write(_ answer: HelloAnswer) {
    replica(answer.feed)
    var flags: UInt8 = answer.leaseSeconds == nil ? 0 : WireFlags.hasLease
    if answer.isLeaseExpired { flags |= WireFlags.isLeaseExpired }
    out.u8(flags)
    if let seconds = answer.leaseSeconds { out.varint(UInt64(seconds)) }
    out.varint(answer.time)
    write(answer.limits)
    write(answer.range)
    write(answer.mark)
  }

  mutating func write(_ request: PullRequest) {
    replica(request.replica)
    out.u8(
      (request.takesBlobs ? WireFlags.takesBlobs : 0)
        | (request.everyVersion ? WireFlags.everyVersion : 0)
        | (request.ownOnly ? WireFlags.ownOnly : 0))
    position(request.after)
    write(request.scope)
    write(request.limits)
    out.varint(UInt64(request.waitMilliseconds))
  }

  mutating func write(_ answer: DigestAnswer) throws(FormatError) {
    write(answer.range)
    position(answer.position)
    out.varint(answer.parts.count)
    for part in answer.parts { try write(part) }
  }

  private mutating func write(_ part: DigestPart) throws(FormatError) {
    write(part.total)
    switch part.content {
    case .sums(let sums):
      out.u8(0)
      for sum in sums { write(sum) }
    case .keys(let keys):
      out.u8(1)
      out.varint(keys.count)
      for key in keys {
        try self.key(key.key)
        let isOther = key.position.epoch != last.epoch
        out.u8(isOther ? 1 : 0)
        if isOther { out.u64(key.position.epoch) }
        difference(key.position.offset, from: last.offset)
        last = key.position
        out.u64(key.low)
        out.u64(key.high)
      }
    }
  }

  private mutating func write(_ sum: DigestSum) {
    out.varint(sum.keys)
    guard sum.keys > 0 else { return }
    out.u64(sum.low)
    out.u64(sum.high)
  }

  mutating func write(_ error: PeerError) {
    out.u8(error.kind.wireCode)
    out.u8(error.retryAfter == nil ? 0 : WireFlags.hasRetryAfter)
    if let seconds = error.secondsToWait { out.varint(UInt64(seconds)) }
    text(error.message)
  }
}
