#if PostgreSQL
  /// A number that monitoring reads.
  public struct PostgresMetric: Sendable {
    public enum Kind: String, Sendable { case counter, gauge }

    public let name: String
    public let kind: Kind
    public let help: String
    public let value: Int
    /// As Prometheus writes them.
    public let labels: String

    init(
      _ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger, labels: String = ""
    ) {
      (self.name, self.kind, self.help, self.labels) = ("postgres_" + name, kind, help, labels)
      self.value = Int(clamping: value)
    }
  }
#endif
