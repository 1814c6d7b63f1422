#if PostgreSQL
  /// One value of the server's PostgreSQL client for a monitoring system such as Prometheus.
  public struct PostgresMetric: Sendable {
    /// Whether a metric only grows (`counter`) or rises and falls (`gauge`).
    public enum Kind: String, Sendable { case counter, gauge }

    /// The name of the metric; it begins with `postgres_`.
    public let name: String
    /// Whether the metric is a counter or a gauge.
    public let kind: Kind
    /// One line for people that says what the metric measures.
    public let help: String
    /// The value of the metric at the moment of the call.
    public let value: Int
    /// The labels of the metric in the syntax of Prometheus; empty for none.
    public let labels: String

    init(
      _ name: String, _ kind: Kind, _ help: String, _ value: some BinaryInteger, labels: String = ""
    ) {
      (self.name, self.kind, self.help, self.labels) = ("postgres_" + name, kind, help, labels)
      self.value = Int(clamping: value)
    }
  }
#endif
