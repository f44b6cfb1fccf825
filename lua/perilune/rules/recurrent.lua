--- Recurrent networks.

return {
  { "zero_state: {rnn|gru|lstm}(...)", native = "zero_state",
    reason = "an initial state of zeros is the default" },
}
