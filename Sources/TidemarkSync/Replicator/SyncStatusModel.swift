public import Observation

/// The status of a replicator, for a view: it follows it as long as it lives.
///
/// ```swift
/// let model = SyncStatusModel(replicator)
/// Text(model.status.phase == .idle ? "up to date" : "\(model.status.pending.entries) pending")
/// ```
@MainActor @Observable
public final class SyncStatusModel {
  /// The status.
  public private(set) var status: SyncStatus

  @ObservationIgnored private var task: Task<Void, Never>?

  /// Follows a replicator.
  public init(_ replicator: Replicator) {
    status = replicator.status
    let statuses = replicator.statuses()
    task = Task { [weak self] in
      for await status in statuses {
        guard let self else { return }
        self.status = status
      }
    }
  }

  isolated deinit { task?.cancel() }
}
