import Foundation
import Tidemark

extension StageRun {
  /// Stores every version of every file of a repository, as its log has them, and compares the
  /// store's log with the pack that git makes of the same.
  func history() throws {
    guard let repository = order.repository else { throw BenchError("no repository was named") }
    let scratch = order.path + "-git"
    defer { try? FileManager.default.removeItem(atPath: scratch) }
    try FileManager.default.createDirectory(atPath: scratch, withIntermediateDirectories: true)
    let history = try GitHistory(repository, scratch: scratch)
    let store = try Store.openBlocking(at: order.path)
    let cost = try Cost {
      for commit in history.commits {
        var batch = WriteBatch()
        for change in commit {
          if let blob = change.blob, let bytes = history.blobs[blob] {
            try batch.put(change.path, bytes)
          } else {
            try batch.delete(change.path)
          }
        }
        try store.blocking.write(batch)
      }
    }
    let compaction = try Cost { try store.blocking.compact(dense: true) }
    let log = try Double(store.status.bytes.log)
    try store.blocking.close()
    let pack = Double(try history.packBytes())
    let more = [
      "versions": Double(history.versions), "raw": Double(history.rawBytes) / 1e6,
      "log": log / 1e6, "pack": pack / 1e6, "disk": Double(Disk.bytes(order.path)) / 1e6,
      "puts": cost.wall, "compaction": compaction.wall,
    ]
    show(Measure("P17", log / pack, more: more))
    show(settings: ["git gc --aggressive beside compact(dense: true), nothing dropped"])
  }
}
