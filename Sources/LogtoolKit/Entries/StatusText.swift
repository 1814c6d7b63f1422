internal import Tidemark
internal import TidemarkEngine

/// A store's figures for people.
struct StatusText {
  private let status: Store.Status
  private let space: StoreSpace
  private let console: Console

  init(_ status: Store.Status, _ space: StoreSpace, _ console: Console) {
    self.status = status
    self.space = space
    self.console = console
  }

  var lines: [String] {
    let bytes = status.bytes
    var lines = [
      row("keys", HumanText.count(status.keys)),
      row("sequence", "\(status.sequence), of which durable \(status.durable.sequence)"),
      row(
        "log",
        "\(HumanText.size(bytes.log)) in "
          + HumanText.count(status.segments.count, "segment", "segments")),
      row("  live", HumanText.size(bytes.live)),
      row("  history", HumanText.size(bytes.history)),
      row("  dead", HumanText.size(bytes.dead)),
      row("  pinned", HumanText.size(bytes.pinned)),
      row(
        "index",
        "\(HumanText.size(bytes.index)) in "
          + HumanText.count(status.runs.count, "index run", "index runs")),
      row("ballast", "\(HumanText.size(bytes.ballast)), set aside for a full disk"),
      row("durable", "\(status.durable.file), offset \(status.durable.offset)"),
      row("history", status.historyFrom > 1 ? "kept from \(status.historyFrom) on" : "all kept"),
      row("retention", retention),
      row("closed", status.isClosedCleanly ? "cleanly" : "not: in use, or its writer ended early"),
      row("store", status.storeID.hexadecimal),
      row("replica", status.replicaID.hexadecimal),
    ]
    if space.cachedEntries > 0 {
      let count = HumanText.count(space.cachedEntries, "key", "keys")
      lines.append(
        row("cached", "\(HumanText.size(space.cachedBytes)) in \(count), before compression"))
    }
    if let failure = space.indexFailure {
      lines.append(row("indexes", "cannot be told: \(failure.message)"))
    }
    for index in space.indexes ?? [] {
      let rows = HumanText.count(index.rows, "row", "rows")
      lines.append(
        row(
          "of index",
          " \(HumanText.size(index.bytes)) in \(rows) of \(index.collection).\(index.index), "
            + "before compression"))
    }
    if space.attachments.count > 0 {
      let count = HumanText.count(space.attachments.count, "file", "files")
      lines.append(row("attachments", " \(HumanText.size(space.attachments.bytes)) in \(count)"))
    }
    if let encryption = status.encryption, let key = encryption.keys.first {
      var text = "with key \(key)"
      if encryption.filesToRewrite > 0 {
        text +=
          "; \(HumanText.count(encryption.filesToRewrite, "file", "files")) not yet: compact "
          + "with both keys"
      }
      lines.append(row("encrypted", text))
    }
    for damage in status.damage {
      let text =
        "sequences \(damage.sequences.lowerBound) to \(damage.sequences.upperBound): "
        + damage.reason
      lines.append(row("damage", console.paint(text, .red)))
    }
    return lines
  }

  private func row(_ name: String, _ value: String) -> String {
    let name = name + String(repeating: " ", count: max(0, 11 - name.count))
    return console.prose(console.paint(name, .bold) + value, indent: 11)
  }

  private var retention: String {
    let retention = status.retention
    var parts: [String] = []
    if let age = retention.ageSeconds {
      parts.append("superseded entries for \(HumanText.duration(seconds: Double(age)))")
    }
    if let bytes = retention.bytes {
      parts.append("up to \(HumanText.size(Int(clamping: bytes)))")
    }
    if let versions = retention.versionsPerKey {
      parts.append(HumanText.count(versions, "version", "versions") + " of a key")
    }
    return parts.isEmpty ? "everything" : parts.joined(separator: ", ")
  }
}
