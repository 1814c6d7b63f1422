internal import Tidemark
internal import TidemarkSync

/// Tells what a simulation does, event by event, to whoever looks for the cause of a failure.
struct SyncNarrator {
  /// The narrator's voice.
  let tell: (String) -> Void

  func event(_ index: Int, _ event: SyncEvent) { tell("\(index + 1): \(event)") }

  /// A new entry of a log.
  func entry(_ entry: ObservedEntry, of device: SimulatedDevice?) {
    let origin = entry.origin.map { " of \($0.short)" } ?? ""
    let labels = entry.labels.map { String(decoding: $0, as: UTF8.self) }.joined()
    tell(
      "    \(device.map { "d\($0.index)" } ?? "server") \(entry.sequence): \(entry.kind) "
        + "\(String(decoding: entry.key, as: UTF8.self)) \(entry.text)"
        + "\(labels.isEmpty ? "" : " [\(labels)]")\(origin)")
  }

  func call(_ call: WireMessage, from device: SimulatedDevice) {
    let name = "  d\(device.index) (\(device.session.replica.short))"
    switch call {
    case .helloRequest(let request):
      let compared = request.hasResynced ? ", compared" : ""
      tell("\(name) hello, cursor \(request.cursor.short)\(compared)")
    case .pushRequest(let request):
      tell("\(name) push \(request.number)")
      for change in request.changes {
        tell(
          "      \(change.sequence): \(change.kind) \(String(decoding: change.key, as: UTF8.self)) "
            + "\(change.content.short) upon \(change.base.short)")
      }
    case .pullRequest(let request): tell("\(name) pull after \(request.after.short)")
    case .valuesRequest(let request):
      tell("\(name) values of \(request.keys.map { String(decoding: $0, as: UTF8.self) })")
    case .digestRequest(let request): tell("\(name) digest \(request.paths)")
    case .attachRequest(let request):
      tell("\(name) attach \(request.attachment) at \(request.offset), \(request.bytes.count)")
    case .fetchRequest(let request):
      tell("\(name) fetch \(request.attachment) at \(request.offset)")
    default: break
    }
  }

  func answer(_ answer: WireMessage, at device: SimulatedDevice) {
    let name = "  d\(device.index) gets"
    let mark = answer.mark.map { " mark \($0.number) \($0.verdicts.map(\.short))" } ?? ""
    let head = answer.range.map { ", head \($0.headPosition.short)" } ?? ""
    tell("\(name)\(mark)\(head)")
    for entry in answer.entries {
      tell(
        "      \(entry.position.short): \(entry.kind) "
          + "\(String(decoding: entry.key, as: UTF8.self)) \(entry.content.short) "
          + "of \(entry.operation.short)")
    }
  }

  /// The state of a device after what it has heard.
  func standing(of device: SimulatedDevice) {
    let progress = device.session.progress
    let outbox = progress.outbox
    var words = ["frontier \(outbox.frontier)"]
    if !outbox.pending.isEmpty { words.append("pending \(outbox.pending.ranges)") }
    for (sequence, reason) in outbox.waiting { words.append("\(sequence) waits: \(reason)") }
    if let batchInFlight = device.session.batchInFlight {
      words.append("under way \(batchInFlight.items.map(\.sequence))")
    }
    if progress.resync != nil { words.append("resynchronises") }
    tell("    d\(device.index): \(words.joined(separator: ", "))")
  }
}

extension ReplicaID {
  fileprivate var short: String { bytes.prefix(2).map { String($0, radix: 16) }.joined() }
}

extension OperationID {
  fileprivate var short: String { "\(replica.short)-\(sequence)" }
}

extension FeedPosition {
  /// The epoch's last digits and the offset.
  fileprivate var short: String { "\(String(epoch & 0xfff, radix: 16))@\(offset)" }
}

extension SyncContent {
  fileprivate var short: String { ObservedEntry.short(value) }
}

extension ChangeBase {
  fileprivate var short: String {
    switch self {
    case .absent: "nothing"
    case .position(let position): position.short
    case .operation(let sequence): "own \(sequence)"
    }
  }
}

extension PushVerdict {
  fileprivate var short: String {
    switch self {
    case .applied(let position): "applied \(position.short)"
    case .duplicate(let position): "duplicate \(position.short)"
    case .conflict(let position): "conflict \(position.short)"
    case .lost(let position): "lost \(position.short)"
    case .rejected: "rejected"
    case .aborted: "aborted"
    }
  }
}
